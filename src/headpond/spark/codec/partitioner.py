"""Kafka's default partitioner for a whole column of keys: the same as Java and librdkafka's ``murmur2_random``.

Rows without a key may go anywhere. They stick to one partition per chunk, which the caller names: fewer and larger
batches than a row here and a row there. A caller that takes the next partition for each chunk (and begins at another
one in each task) spreads them evenly, and does the same again when the task is repeated, which chance would not.
An empty key is a key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headpond.spark.codec.inputs import ByteColumn


def partition_of_keys(key: ByteColumn, partition_count: int, *, keyless_partition: int) -> npt.NDArray[np.int32]:
    """The partition of each row. ``key``: of ``RecordColumns``; ``keyless_partition``: for rows whose key is null."""
    from headpond.spark.codec.murmur import place_keys  # brings numba along

    if not 0 <= keyless_partition < partition_count:
        raise ValueError(f"{keyless_partition} is not one of {partition_count} partitions")
    partitions = np.full(len(key.sizes), keyless_partition, np.int32)
    place_keys(key.data, key.starts, key.sizes, partition_count, partitions)
    return partitions
