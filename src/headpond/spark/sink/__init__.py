"""The sink: rows become records of topics, exactly once.

options.py      what the user says
addresses.py    what of a folder's address may be shown
columns.py      which columns there may be, of which types
targets.py      what a task has to know of the topics: partitions, the largest record
rows.py         a chunk of rows to batches of each partition, with a rule for everything that may be wrong with a row
staging.py      where tasks put finished batches, and how the driver gets them back
tasks.py        what runs on executors: to the staging folder, or straight to the topics
commit.py       what runs on the driver: one transaction that holds all of it, or nothing
writers.py      the classes that Spark calls
"""
