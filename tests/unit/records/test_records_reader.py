"""The reader believes nothing: every count and length has to add up, and any bytes give records or CorruptBatch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.protocol.records.builder import assemble, build_batch
from headpond.protocol.records.compression import compress
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import APPEND_TIME_BIT, HEADER_BYTES, read_header
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Record
from headpond.protocol.records.varint import decode_varint, encode_varint
from unit.records.made_up_records import record_lists

TWO = [Record(0, 100, b"k", b"v"), Record(1, 200, b"k", b"v", (("h", b"x"),))]


def batch_of(payload: bytes, *, count: int, codec: int = 0) -> bytearray:
    return assemble(
        compress(codec, payload),
        base_offset=0,
        leader_epoch=0,
        attributes=codec,
        last_offset_delta=max(0, count - 1),
        base_timestamp=0,
        max_timestamp=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=count,
    )


def payload_of(records: list[Record]) -> bytes:
    return bytes(build_batch(records)[HEADER_BYTES:])


def test_append_time_overrides_every_records_time() -> None:
    batch = build_batch(TWO, attributes=APPEND_TIME_BIT)
    assert [r.timestamp for r in read_records(batch)] == [200, 200]


def test_batch_without_records_is_empty() -> None:
    assert list(read_records(batch_of(b"", count=0))) == []


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_count_that_lies_is_corrupt(count: int, codec: int) -> None:
    with pytest.raises(CorruptBatch):
        list(read_records(batch_of(payload_of(TWO), count=count, codec=codec)))


def test_bytes_after_the_last_record_are_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="still remaining"):
        list(read_records(batch_of(payload_of(TWO) + b"\x00", count=2)))


def test_batch_whose_length_disagrees_with_its_bytes_is_corrupt() -> None:
    batch = bytes(build_batch(TWO))
    for wrong in (batch + b"x", batch[:-1], batch[:60], b""):
        with pytest.raises(CorruptBatch):
            list(read_records(wrong))


RECORD_PARTS = {
    "a length beyond the batch": b"\x7e\x00\x00\x00\x01\x01\x00",
    "a negative length": b"\x01\x00\x00\x00\x01\x01\x00",
    "a length shorter than its parts": b"\x0a\x00\x00\x00\x01\x01\x00",
    "a length longer than its parts": b"\x0e\x00\x00\x00\x01\x01\x00\x00",
    "a key that is cut off": b"\x0c\x00\x00\x00\x20\x01\x00",
    "a value that is cut off": b"\x0c\x00\x00\x00\x01\x20\x00",
    "a negative number of headers": b"\x0c\x00\x00\x00\x01\x01\x01",
    "more headers than bytes": b"\x0c\x00\x00\x00\x01\x01\x7e",
    "a header without a name": b"\x10\x00\x00\x00\x01\x01\x02\x01\x01",
    "a varint that never ends": b"\xff" * 12,
    "a timestamp that never ends": b"\x30\x00" + b"\xff" * 23,
}


@pytest.mark.parametrize("payload", RECORD_PARTS.values(), ids=RECORD_PARTS.keys())
def test_record_with_a_wrong_part_is_corrupt(payload: bytes) -> None:
    with pytest.raises(CorruptBatch):
        list(read_records(batch_of(payload, count=1)))


def test_smallest_record_has_seven_bytes() -> None:
    assert list(read_records(batch_of(b"\x0c\x00\x00\x00\x01\x01\x00", count=1))) == [Record(0, 0, None, None)]


@given(st.binary(max_size=120), st.integers(-1, 5), st.integers(0, 7))
def test_any_payload_gives_records_or_our_error(payload: bytes, count: int, attributes: int) -> None:
    batch = batch_of(payload, count=count)
    batch[22] = attributes
    try:
        assert len(list(read_records(batch, size_bytes_max=10_000))) == count
    except CorruptBatch:
        pass


@given(record_lists(), st.integers(0, 4), st.data())
def test_damaged_batches_give_records_or_our_error(records: list[Record], codec: int, data: st.DataObject) -> None:
    batch = build_batch(records, codec=codec)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert len(list(read_records(batch, size_bytes_max=100_000))) == read_header(batch).count
    except CorruptBatch:
        pass


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_of_64_bits_survive(value: int) -> None:
    encoded = encode_varint(value)
    assert decode_varint(encoded, 0, bytes_max=10) == (value, len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_of_32_bits_survive_in_five_bytes(value: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) <= 5
    assert decode_varint(b"x" + encoded, 1) == (value, len(encoded) + 1)
