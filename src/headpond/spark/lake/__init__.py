"""``headpond pipeline archive | restore | snapshot | audit``: topics and a lake of Parquet files.

layout.py       where everything lies in a lake; state.py: what a lake knows of a topic, one file for each
store.py        opens, locks and commits: how a crash leaves a lake, and what makes it whole
archive*.py     topics into a lake;  restore*.py: back;  snapshot.py: the latest value per key;  audit*.py: the report
tasks.py        work on executors, one small answer per task;  task_counts.py: how many of Spark's tasks are done

Rows never pass through the JVM where they need not: a task of archive and audit reads its part of a topic with our own
client and writes or counts it in the same process.
"""
