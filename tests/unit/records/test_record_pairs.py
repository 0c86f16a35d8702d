"""Keys and values alone are the same as those of whole records, and broken payloads are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import read_header
from headpond.protocol.records.pairs import iter_pairs
from headpond.protocol.records.reader import read_payload, read_records
from headpond.protocol.records.record import Record

data = st.none() | st.binary(max_size=80) | st.sampled_from([b"x" * 63, b"x" * 64, b"x" * 9_000])
rows = st.tuples(st.integers(0, 10**13), data, data, st.lists(st.tuples(st.text(max_size=3), data), max_size=2))


def payload_of(batch: bytes) -> tuple[bytes, int]:
    header = read_header(batch)
    return read_payload(batch, header), header.count


@given(st.lists(rows, min_size=1, max_size=200))
def test_pairs_are_the_keys_and_values_of_the_records(given_rows: list[tuple]) -> None:  # type: ignore[type-arg]
    batch = bytes(
        build_batch(
            [Record(number, time, key, value, tuple(h)) for number, (time, key, value, h) in enumerate(given_rows)]
        )
    )
    assert list(iter_pairs(*payload_of(batch))) == [(each.key, each.value) for each in read_records(batch)]


@given(st.binary(max_size=200), st.integers(0, 5))
def test_any_bytes_give_pairs_or_a_corrupt_batch(payload: bytes, count: int) -> None:
    try:
        pairs = list(iter_pairs(payload, count))
    except CorruptBatch:
        return
    assert len(pairs) == count


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_payload_that_is_cut_off_is_corrupt(cut: int) -> None:
    payload, count = payload_of(bytes(build_batch([Record(0, 0, b"key", b"value" * 30)])))
    with pytest.raises(CorruptBatch):
        list(iter_pairs(payload[:-cut], count))
    with pytest.raises(CorruptBatch):
        list(iter_pairs(payload + b"\0" * cut, count))
