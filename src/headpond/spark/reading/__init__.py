"""How ranges of topics are read, for the source, the lake and the pipelines.

options.py       the options of a read, checked; positions.py: where it begins and ends
offsets.py       how far a read is, as one canonical text
planning.py      what a micro-batch may take, and which task reads what
cluster.py       asks the brokers; range_reader.py: a task reads its range; losses.py: what can't be read any more

Everything but ``cluster.py`` and ``range_reader.py`` is pure. Nothing here imports pyspark, and pyarrow
comes with the first record.
"""
