"""Metrics and logs: plain counters that cost an addition, an exposition that reads them when somebody asks, and log
lines for people or for machines. Imported by everybody, imports nobody."""
