"""Arrow columns to RecordBatch v2, for one target partition.

Offsets count from 0 in each batch and the producer's fields are empty, as the broker wants them from a producer that
is not idempotent; ``patch_producer`` fills them in later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headpond.protocol.records.builder import assemble
from headpond.protocol.records.compression import CODEC_NAMES, NONE, compress
from headpond.protocol.records.header import (
    HEADER_BYTES,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from headpond.spark.codec.errors import CannotEncode
from headpond.spark.codec.inputs import RecordColumns

BATCH_BYTES_MAX = 2**31 - 1
"""A batch's length is a signed 32-bit number."""


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

    Raises ``CannotEncode`` with the row for a record that would not fit into a batch of its own (the batches before it
    have come out by then), ``ValueError`` for an unknown compression or a row that does not exist.
    """
    if compression not in CODEC_NAMES:
        raise ValueError(f"there is no compression {compression!r}; there are {', '.join(CODEC_NAMES)}")
    if not HEADER_BYTES < batch_bytes_max <= BATCH_BYTES_MAX:
        raise ValueError(f"batch_bytes_max is {batch_bytes_max}; it has to be from 62 to {BATCH_BYTES_MAX}")
    chosen = np.arange(columns.count) if rows is None else np.ascontiguousarray(rows, np.int64)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < columns.count:
        raise ValueError(f"rows are from {chosen.min()} to {chosen.max()}, there are {columns.count}")
    return _batches(columns, chosen, batch_bytes_max, CODEC_NAMES.index(compression), level)


def _batches(
    columns: RecordColumns, rows: npt.NDArray[np.int64], batch_bytes_max: int, codec: int, level: int | None
) -> Iterator[EncodedBatch]:
    from headpond.spark.codec import pack  # brings numba along

    headers = columns.headers
    inputs = (
        *columns.key,
        *columns.value,
        *(headers.starts, headers.ends, *headers.names, *headers.values),
        columns.timestamp_ms,
    )
    payload = np.empty(batch_bytes_max - HEADER_BYTES, np.uint8)
    state = np.zeros(pack.STATE_FIELDS, np.int64)
    while (first := int(state[pack.NEXT])) < len(rows):
        pack.pack(rows, *inputs, payload, state)
        count, size = int(state[pack.COUNT]), int(state[pack.SIZE])
        row = int(rows[first])
        if count == 0:
            what = f"row {row} takes {HEADER_BYTES + size} bytes in a batch of its own; the limit is {batch_bytes_max}"
            raise CannotEncode(what, row=row)
        packed, used_codec = _compressed(payload[:size].data, codec, level)
        batch = assemble(
            packed,
            base_offset=0,
            leader_epoch=NO_LEADER_EPOCH,
            attributes=used_codec,
            last_offset_delta=count - 1,
            base_timestamp=int(columns.timestamp_ms[row]),
            max_timestamp=int(state[pack.MAX_TIMESTAMP]),
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            count=count,
        )
        yield EncodedBatch(batch, count)


def _compressed(payload: memoryview, codec: int, level: int | None) -> tuple[bytes | memoryview, int]:
    if codec != NONE:
        packed = compress(codec, payload, level)
        if len(packed) < len(payload):
            return packed, codec
    return payload, NONE
