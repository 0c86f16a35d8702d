"""Arrow columns to RecordBatch v2, for one target partition.

Offsets count from 0 in each batch and the producer's fields are empty, as the broker wants them from a producer that
is not idempotent; ``patch_producer`` fills them in later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.protocol.records.builder import build_batch
from penstock.protocol.records.compression import CODEC_NAMES
from penstock.protocol.records.record import Record
from penstock.spark.codec.errors import CannotEncode
from penstock.spark.codec.inputs import Bytes, RecordColumns


class EncodedBatch(NamedTuple):
    data: bytearray
    """Exactly one batch, the caller's own: it may be patched."""
    record_count: int
    """How many sequences it takes."""


def encode(
    columns: RecordColumns,
    *,
    rows: npt.NDArray[np.int64] | None = None,
    batch_bytes_max: int,
    compression: str = "none",
    level: int | None = None,
) -> Iterator[EncodedBatch]:
    """The chosen ``rows`` (None: all), in their order, as batches none of which is larger than ``batch_bytes_max``.

    The limit holds before and after compression: a payload that does not get smaller is left uncompressed.
    ``level`` None: Kafka's default of the codec.

    Raises ``CannotEncode`` with the row for a record that would not fit into a batch of its own, ``ValueError`` for
    an unknown compression.
    """
    if compression not in CODEC_NAMES:
        raise ValueError(f"there is no compression {compression!r}; there are {', '.join(CODEC_NAMES)}")
    codec = CODEC_NAMES.index(compression)
    chosen = range(columns.count) if rows is None else rows
    pending: list[Record] = []
    for row in chosen:
        candidate = [*pending, _record(columns, int(row), len(pending))]
        if len(build_batch(candidate)) > batch_bytes_max:
            if pending:
                yield EncodedBatch(build_batch(pending, codec=codec, level=level), len(pending))
            candidate = [_record(columns, int(row), 0)]
            if (size := len(build_batch(candidate))) > batch_bytes_max:
                raise CannotEncode(f"row {row} takes {size} bytes, the limit is {batch_bytes_max}", row=int(row))
        pending = candidate
    if pending:
        yield EncodedBatch(build_batch(pending, codec=codec, level=level), len(pending))


def _record(columns: RecordColumns, row: int, offset: int) -> Record:
    headers = columns.headers
    pairs = []
    for entry in range(headers.starts[row], headers.ends[row]):
        name = _one(headers.names, entry) or b""
        pairs.append((name.decode("utf-8", "surrogateescape"), _one(headers.values, entry)))
    timestamp = int(columns.timestamp_ms[row])
    return Record(offset, timestamp, _one(columns.key, row), _one(columns.value, row), tuple(pairs))


def _one(column: Bytes, row: int) -> bytes | None:
    start, size = int(column.starts[row]), int(column.sizes[row])
    return None if size < 0 else column.data[start : start + size].tobytes()
