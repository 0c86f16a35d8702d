"""The keys that compaction's inner loop finds are those that the reader of records finds, however records look."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import read_header
from headpond.protocol.records.reader import iter_payload, read_payload
from headpond.protocol.records.record import Record
from headpond.storage.compaction.keys import KEY_BYTES_MAX, read_keys

Chance = random.Random
SIZES: dict[str, Callable[[Chance], int]] = {
    "all alike": lambda chance: 12,
    "nearly alike": lambda chance: chance.choice((5, 5, 5, 5, 5, 4)),
    "all different": lambda chance: chance.randrange(80),
    "none, empty or long": lambda chance: chance.choice((-1, 0, KEY_BYTES_MAX, KEY_BYTES_MAX + 1, 300)),
}


def a_batch(chance: Chance, key_size: Callable[[Chance], int], value_size: Callable[[Chance], int]) -> bytes:
    def field(size: int) -> bytes | None:
        return None if size < 0 else chance.randbytes(size)

    records = []
    offset = timestamp = 0
    for _ in range(chance.choice((1, 2, 90, 300))):
        headers = (("name", b"x"),) if chance.random() < 0.05 else ()
        records.append(Record(offset, timestamp, field(key_size(chance)), field(value_size(chance)), headers))
        offset += chance.choice((1, 1, 1, 1, 70))  # compaction leaves gaps
        timestamp += chance.choice((0, 1, 1, 5_000, -3))
    return bytes(build_batch(records, base_offset=0))


@pytest.mark.parametrize("values", SIZES)
@pytest.mark.parametrize("keys", SIZES)
def test_keys_and_tombstones_are_those_of_the_records(keys: str, values: str) -> None:
    chance = Chance(f"{keys} {values}")
    for _ in range(10):
        batch = a_batch(chance, SIZES[keys], SIZES[values])
        header = read_header(batch)
        payload = read_payload(batch, header)
        found, tombstones = read_keys(payload, header.count)
        records = list(iter_payload(payload, header))
        assert tombstones == [number for number, record in enumerate(records) if record.value is None]
        assert len(found) == len(records)
        for key, record in zip(found, records, strict=True):
            if record.key is None or len(record.key) <= KEY_BYTES_MAX:
                assert key == record.key
            else:
                assert key is not None and len(key) > KEY_BYTES_MAX


def test_records_that_are_cut_off_or_followed_by_something_are_no_records() -> None:
    batch = a_batch(Chance(3), SIZES["all alike"], SIZES["all alike"])
    header = read_header(batch)
    payload = read_payload(batch, header)
    for damaged in (payload[:-1], payload + b"\0", payload[: len(payload) // 2]):
        with pytest.raises(CorruptBatch):
            read_keys(damaged, header.count)
    with pytest.raises(CorruptBatch):
        read_keys(payload, header.count + 1)
    with pytest.raises(CorruptBatch):
        read_keys(payload, header.count - 1)


@pytest.mark.parametrize("count", [1, 2, 2_000_000_000])
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x85\x80\x00" + bytes(20),  # of a negative size: the next one is the same again
        b"\x01" * 40,
        b"\x0c\x00\x00\x00\x60ab\x00" + bytes(5),  # a key that is longer than its record
    ],
)
def test_what_no_client_writes_ends_at_once(payload: bytes, count: int) -> None:
    with pytest.raises(CorruptBatch):
        read_keys(payload, count)
