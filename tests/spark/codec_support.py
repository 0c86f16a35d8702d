"""What tests of the codec share: a slow reference in plain Python, and batches of every kind.

Importing it skips the test where pyarrow and numba are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")
pytest.importorskip("numba")

from headpond.client import ClientError  # noqa: E402
from headpond.client.fetched import corrupt, cut_records  # noqa: E402
from headpond.model import TopicPartition  # noqa: E402
from headpond.protocol.records.control import build_end_txn_marker  # noqa: E402
from headpond.protocol.records.errors import CorruptBatch  # noqa: E402
from headpond.protocol.records.header import crc_of  # noqa: E402
from headpond.protocol.records.reader import read_records  # noqa: E402
from headpond.protocol.records.record import Record  # noqa: E402
from headpond.spark import codec  # noqa: E402
from headpond.spark.codec import jit, unpack  # noqa: E402
from support.other_side import stamp  # noqa: E402

__all__ = [
    "ALL_CODECS",
    "MS_MAX",
    "TP",
    "codec",
    "jit",
    "marker_at",
    "mend_crc",
    "np",
    "numbered",
    "outcome",
    "pa",
    "reference_rows",
    "rows_of",
    "unpack",
]

TP = TopicPartition("orders", 3)
ALL_CODECS = range(5)
COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")
MS_MAX = (2**63 - 1) // 1000
"""The last millisecond that a column of microseconds holds."""
Row = tuple[Any, ...]


def rows_of(decoding: Iterable[Any], columns: Sequence[str] = COLUMNS) -> list[Row]:
    """All rows of some Arrow batches, each checked to be sound and not empty; timestamps as microseconds."""
    rows: list[Row] = []
    for batch in decoding:
        batch.validate(full=True)
        assert batch.num_rows > 0
        assert batch.schema == codec.schema_of(columns)
        lists = [_plain(batch.column(name)) for name in columns]
        rows += zip(*lists, strict=True)
    return rows


def _plain(column: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    if pa.types.is_list(column.type):
        return [None if row is None else [(one["key"], one["value"]) for one in row] for row in column.to_pylist()]
    return column.to_pylist()


def reference_rows(data: bytes, **options: Any) -> list[Row]:
    """The same by ``protocol.records``, one record at a time."""
    rows: list[Row] = []
    end_offset = options.get("end_offset")
    for batch in cut_records(TP, data, **options).batches:
        header = batch.header
        next_offset = options["from_offset"]
        try:
            for record in read_records(batch.data):
                if not header.base_offset <= record.offset <= min(header.last_offset, 2**63 - 1):
                    raise CorruptBatch("an offset outside of the batch")
                if record.offset < next_offset or (end_offset is not None and record.offset >= end_offset):
                    continue
                next_offset = record.offset + 1
                rows.append(_reference_row(record, header.is_append_time))
        except CorruptBatch as error:
            raise corrupt(TP, header.base_offset, str(error)) from error
    return rows


def _reference_row(record: Record, is_append_time: bool) -> Row:
    headers = [(_replaced(name), value) for name, value in record.headers] or None
    timestamp_us = min(max(record.timestamp, -MS_MAX), MS_MAX) * 1000
    return record.key, record.value, record.offset, timestamp_us, int(is_append_time), headers


def _replaced(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def outcome(read: Any, *arguments: Any, **options: Any) -> list[Row] | str:
    """What reading comes to: the rows, or the name of the error; any other exception is a fault of the reader."""
    try:
        return list(read(*arguments, **options))
    except ClientError as error:
        assert str(TP) in str(error)
        return error.code.name


def numbered(count: int, *, start: int = 0, size: int = 3) -> list[Record]:
    return [Record(n, 1_000 + n, b"k%d" % n, b"%d" % n * size) for n in range(start, start + count)]


def marker_at(offset: int, producer_id: int, *, is_abort: bool) -> bytes:
    marker = build_end_txn_marker(
        producer_id=producer_id, producer_epoch=0, is_abort=is_abort, coordinator_epoch=0, timestamp=7
    )
    stamp(marker, 0, offset, 0)
    return bytes(marker)


def mend_crc(batch: bytearray) -> bytearray:
    """After damage that the checksum is not to give away."""
    batch[17:21] = crc_of(batch).to_bytes(4, "big")
    return batch
