"""Append time, recompression, and the search for a time inside one batch; markers of transactions."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.control import EndTxnMarker, build_end_txn_marker, read_end_txn_marker
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import APPEND_TIME_BIT, CONTROL_BIT, TRANSACTIONAL_BIT, crc_of, read_header
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Record
from headpond.protocol.records.rewrite import recompress, set_append_time, set_timestamps
from headpond.protocol.records.search import TimestampOffset, first_at_or_after, latest
from unit.records.made_up_records import record_lists


@given(record_lists(), st.integers(0, 4))
def test_append_time_changes_the_time_and_nothing_else(records: list[Record], codec: int) -> None:
    batch = build_batch(records, codec=codec, producer_id=5, producer_epoch=1, base_sequence=3)
    before = read_header(batch)
    after = set_append_time(memoryview(batch), 123_456)
    assert after == read_header(batch)
    assert after.crc == crc_of(batch)
    assert after._replace(crc=0) == before._replace(
        crc=0, max_timestamp=123_456, attributes=before.attributes | APPEND_TIME_BIT
    )
    assert list(read_records(batch)) == [record._replace(timestamp=123_456) for record in records]


def test_append_time_can_be_taken_back() -> None:
    batch = build_batch([Record(0, 7, b"k", b"v")])
    original = bytes(batch)
    set_append_time(batch, 99)
    set_timestamps(batch, 7, is_append_time=False)
    assert bytes(batch) == original


@given(record_lists(), st.integers(0, 4), st.integers(0, 4))
def test_recompression_changes_the_codec_and_nothing_else(records: list[Record], source: int, target: int) -> None:
    batch = build_batch(
        records, codec=source, attributes=TRANSACTIONAL_BIT, producer_id=5, producer_epoch=1, base_sequence=3
    )
    again = recompress(batch, target)
    header = read_header(again)
    assert header.crc == crc_of(again)
    assert (header.codec, header.size_bytes) == (target, len(again))
    assert header[5:] == read_header(batch)._replace(attributes=TRANSACTIONAL_BIT | target)[5:]
    assert list(read_records(again)) == records


@given(record_lists(), st.integers(0, 4), st.data())
def test_search_by_time_finds_the_first_record_that_is_late_enough(
    records: list[Record], codec: int, data: st.DataObject
) -> None:
    records = [record._replace(offset=record.offset + 70) for record in records]
    batch = build_batch(records, base_offset=70, codec=codec)
    timestamp = data.draw(st.sampled_from(records)).timestamp + data.draw(st.integers(-1, 1))
    from_offset = data.draw(st.integers(69, 82))
    expected = [(r.timestamp, r.offset) for r in records if r.timestamp >= timestamp and r.offset >= from_offset]
    found = first_at_or_after(batch, timestamp, from_offset=from_offset)
    assert found == (TimestampOffset(*expected[0]) if expected else None)


@given(record_lists())
def test_latest_is_the_first_record_with_the_highest_time(records: list[Record]) -> None:
    top = max(record.timestamp for record in records)
    assert latest(build_batch(records)) == (top, next(r.offset for r in records if r.timestamp == top))


def test_under_append_time_the_first_record_is_the_answer() -> None:
    batch = build_batch([Record(i, 100 - i, b"k", b"v") for i in range(3)], codec=4)
    set_append_time(batch, 5_000)
    assert latest(batch) == (5_000, 0)
    assert first_at_or_after(batch, 4_999) == (5_000, 0)
    assert first_at_or_after(batch, 5_001) is None


@pytest.mark.parametrize("is_abort", [True, False])
def test_marker_is_read_as_it_was_built(is_abort: bool) -> None:
    batch = build_end_txn_marker(
        producer_id=8, producer_epoch=2, is_abort=is_abort, coordinator_epoch=6, timestamp=1_000
    )
    header = read_header(batch)
    assert header.is_control and header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 2, -1)
    assert read_end_txn_marker(batch) == EndTxnMarker(is_abort, 6, 1_000)


def control_batch(key: bytes | None, value: bytes | None) -> bytearray:
    return build_batch([Record(0, 1, key, value)], attributes=CONTROL_BIT)


def test_marker_of_a_later_version_is_read_by_the_fields_we_know() -> None:
    batch = control_batch(struct.pack(">hh", 3, 1) + b"more", struct.pack(">hi", 2, 9) + b"more")
    assert read_end_txn_marker(batch) == EndTxnMarker(False, 9, 1)


def test_other_control_records_are_no_markers() -> None:
    assert read_end_txn_marker(control_batch(struct.pack(">hh", 0, 2), b"a leader change")) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"\x00", None),
        (struct.pack(">hh", -1, 0), struct.pack(">hi", 0, 1)),
        (struct.pack(">hh", 0, 0), None),
        (struct.pack(">hh", 0, 0), b"\x00\x00"),
        (struct.pack(">hh", 0, 0), struct.pack(">hi", -1, 1)),
    ],
)
def test_marker_that_is_not_one_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        read_end_txn_marker(control_batch(key, value))
