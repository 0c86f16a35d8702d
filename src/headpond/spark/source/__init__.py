"""``spark.read.format("headpond")`` and ``spark.readStream.format("headpond")``: Spark's readers.

batch.py, stream.py    from an offset to an offset, once or again and again
ranges.py              what Spark carries from the driver to a task
data_loss.py           what became of the partitions between two micro-batches

What they are made of is in ``spark/reading``, which lake and pipelines share.
"""
