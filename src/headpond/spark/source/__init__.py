"""``spark.read.format("headpond")`` and ``spark.readStream.format("headpond")``.

options.py      what the user wrote, checked: names.py has the names, values.py reads numbers, times and JSON
offsets.py      how far a query is, as one canonical text; positions.py: where it begins and ends
planning.py     what a micro-batch may take, and which task reads what; data_loss.py: what has gone meanwhile
cluster.py      asks the brokers; reading.py: a task reads its range; link.py: from Spark's threads to our loop
batch.py, stream.py    Spark's readers, made of these

Everything above ``cluster.py`` is pure. Nothing here imports pyspark but the two readers, and pyarrow comes with the
first record.
"""
