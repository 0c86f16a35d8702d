"""Headpond: a durable, partitioned log broker that every Kafka client speaks to."""

__version__ = "0.1.0"
