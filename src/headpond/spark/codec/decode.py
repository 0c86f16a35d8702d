"""Fetched batches to Arrow: the wanted columns, in chunks of some MiB.

What a reader must not see is left out as a consumer leaves it out: control batches, aborted transactions, records
before the first offset that was asked for or from the end offset on. All of it is counted in ``next_offset``.

Damage (a checksum, a length or a count that is wrong, a payload that does not decompress) is a ``ClientError`` with
``CORRUPT_MESSAGE`` whose sentence names topic, partition and offset. No other error leaves, and no byte outside of the
given ones is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from headpond.client.fetched import FetchedBatch, cut_records
from headpond.model import TopicPartition
from headpond.ports import Buffer
from headpond.spark.codec.columns import DEFAULT_COLUMNS, schema_of

CHUNK_BYTES = 2 * 1024 * 1024
"""About how much of keys, values and headers one Arrow batch holds: what fits into a core's cache is fastest."""

CHUNK_BYTES_MAX = 1024 * 1024 * 1024
"""Half of what Arrow's 32-bit offsets can count; one record alone is never more than they can."""


class Decoding:
    """An iterator over Arrow batches, none of them empty, with the columns that were asked for in that order.

    ``next_offset``: where reading goes on once all batches were taken; everything below it (and below the end offset,
    if one was given) was seen, whether it became a row or not.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], next_offset: int, schema: pa.Schema) -> None:
        self._batches = batches
        self.next_offset = next_offset
        self.schema = schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches


def decode(
    data: Buffer,
    *,
    tp: TopicPartition,
    from_offset: int,
    end_offset: int | None = None,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    aborted: Iterable[tuple[int, int]] = (),
    check_crcs: bool = True,
    chunk_bytes: int = CHUNK_BYTES,
) -> Decoding:
    """The records in ``data``, one partition's part of a Fetch answer: whole batches, perhaps a cut one at the end.

    ``end_offset``: the first offset that is not wanted any more; None: no end.
    ``aborted``: (producer id, first offset) of each transaction that the answer to a read_committed Fetch lists.
    ``chunk_bytes``: a chunk ends before it would grow beyond this, except for a single record that is larger.

    Raises ``ClientError``: CORRUPT_MESSAGE (see above; damage inside of a batch is found when its chunk is made),
    RECORD_LIST_TOO_LARGE when not even the first batch is there whole, UNSUPPORTED_FOR_MESSAGE_FORMAT for records from
    before Kafka 0.11; ``ValueError`` for a column that does not exist, or chunks larger than Arrow can count.
    """
    cut = cut_records(tp, data, from_offset=from_offset, end_offset=end_offset, aborted=aborted, check_crcs=check_crcs)
    schema = schema_of(columns)
    chunks = decode_batches(cut.batches, columns=columns, chunk_bytes=chunk_bytes)
    return Decoding(chunks, cut.next_offset, schema)


def decode_batches(
    batches: Iterable[FetchedBatch], *, columns: Sequence[str] = DEFAULT_COLUMNS, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[pa.RecordBatch]:
    """The same for batches that the client's ``Reader`` has cut and checked already.

    They may come from several partitions, those of each one in order; a chunk holds rows of one partition only.
    """
    from headpond.spark.codec.chunks import chunks_of  # brings numba along

    if not 0 < chunk_bytes <= CHUNK_BYTES_MAX:
        raise ValueError(f"chunk_bytes is {chunk_bytes}; it has to be from 1 to {CHUNK_BYTES_MAX}")
    return chunks_of(batches, schema_of(columns), chunk_bytes)
