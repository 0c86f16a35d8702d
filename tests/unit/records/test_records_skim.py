"""A quick look through records says yes only where the one by one would, and finds the same latest time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import read_header
from headpond.protocol.records.reader import iter_payload, read_payload
from headpond.protocol.records.record import Record
from headpond.protocol.records.skim import TimestampDeltas, skim
from unit.records.made_up_records import record_lists

NOW = 1_700_000_000_000


def payload_of(records: list[Record]) -> bytes:
    batch = build_batch(records)
    return read_payload(batch, read_header(batch))


def one_by_one(payload: bytes, count: int, *, needs_keys: bool) -> TimestampDeltas | None:
    """What ``skim`` has to find, by decoding; None where it has to say that it does not know."""
    header = read_header(build_batch([Record(0, 0, b"", b"")]))._replace(count=count)
    try:
        records = list(iter_payload(payload, header))
    except CorruptBatch:
        return None
    times = [record.timestamp for record in records]
    is_good = all(
        record.offset == number and not (needs_keys and record.key is None) for number, record in enumerate(records)
    )
    return TimestampDeltas(min(times), max(times)) if is_good else None


@given(record_lists(), st.booleans())
def test_what_producers_send_is_found_as_the_slow_look_finds_it(records: list[Record], needs_keys: bool) -> None:
    payload = payload_of(records)
    assert skim(payload, len(records), needs_keys=needs_keys) == one_by_one(
        payload, len(records), needs_keys=needs_keys
    )


FIXED = {
    "small": [Record(0, NOW, b"k", b"v"), Record(1, NOW + 1, b"", b"")],
    "sizes of two bytes": [Record(0, NOW, b"key", b"v" * 90), Record(1, NOW - 100, b"key", b"v" * 70)],
    "headers": [Record(0, NOW, b"k", b"v", (("name", b"x"), ("", None)))],
    "no key, no value": [Record(0, NOW, None, b"v"), Record(1, NOW, b"k", None)],
}


@pytest.mark.parametrize("records", FIXED.values(), ids=FIXED)
def test_no_byte_can_be_changed_so_that_only_the_quick_look_finds_the_records_good(records: list[Record]) -> None:
    payload = payload_of(records)
    for at in range(len(payload)):
        for byte in range(256):
            changed = payload[:at] + bytes((byte,)) + payload[at + 1 :]
            for needs_keys in (True, False):
                found = skim(changed, len(records), needs_keys=needs_keys)
                expected = one_by_one(changed, len(records), needs_keys=needs_keys)
                assert found == expected, (at, byte)


@given(record_lists(), st.data())
def test_bytes_that_changed_and_counts_that_lie_are_found_as_the_slow_look_finds_them(
    records: list[Record], data: st.DataObject
) -> None:
    payload = bytearray(payload_of(records))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload[at] ^= 1 << data.draw(st.integers(0, 7))
    cut = bytes(payload[: data.draw(st.integers(len(payload) // 2, len(payload)))])
    count = max(1, len(records) + data.draw(st.integers(-1, 1)))
    for needs_keys in (True, False):
        assert skim(cut, count, needs_keys=needs_keys) == one_by_one(cut, count, needs_keys=needs_keys)


@pytest.mark.parametrize("value_bytes", [0, 50, 63, 64, 1_000, 8_191, 8_192, 70_000])
@pytest.mark.parametrize("key_bytes", [0, 1, 63, 64, 9_000])
def test_sizes_of_one_two_and_more_bytes(key_bytes: int, value_bytes: int) -> None:
    records = [Record(n, NOW + n * 97, b"k" * key_bytes, b"v" * value_bytes) for n in range(3)]
    assert skim(payload_of(records), 3, needs_keys=True) == (0, 194)


def test_numbers_and_times_of_one_two_and_more_bytes() -> None:
    records = [Record(n, NOW + n * n, b"key", None if n % 2 else b"") for n in range(20_000)]
    assert skim(payload_of(records), len(records), needs_keys=True) == (0, 19_999**2)


def test_a_missing_key_is_seen_wherever_it_is() -> None:
    for missing in (0, 70, 99):
        payload = payload_of([Record(n, NOW, None if n == missing else b"k", b"v") for n in range(100)])
        assert skim(payload, 100, needs_keys=True) is None
        assert skim(payload, 100, needs_keys=False) == (0, 0)


def test_records_behind_the_last_one_and_a_record_that_is_missing_are_seen() -> None:
    payload = payload_of([Record(n, NOW, b"k", b"v") for n in range(3)])
    assert skim(payload, 2, needs_keys=True) is None
    assert skim(payload, 4, needs_keys=True) is None
