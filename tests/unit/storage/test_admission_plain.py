"""The quick look at a batch agrees with the thorough one: whatever it passes, ``admit`` takes as it is."""

from __future__ import annotations

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from headpond.config.log import LogConfig
from headpond.model import TopicPartition
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.header import CRC_POSITION, crc_of
from headpond.protocol.records.record import Record
from headpond.storage.admission.admission import BatchRefused, admit, plain_header

NOW_MS = 1_700_000_000_000
TP = TopicPartition("topic", 0)
CONFIG = LogConfig()


def batch_of(count: int, codec: int) -> bytearray:
    records = [Record(offset=i, timestamp=NOW_MS, key=b"k", value=b"v" * 20, headers=()) for i in range(count)]
    return bytearray(build_batch(records, codec=codec))


@given(count=st.integers(1, 5), codec=st.integers(0, 4))
@settings(max_examples=30, deadline=None)
def test_a_good_batch_passes_the_quick_look(count: int, codec: int) -> None:
    batch = memoryview(batch_of(count, codec))
    assert plain_header(batch, CONFIG, NOW_MS, zstd_allowed=True) == admit(batch, CONFIG, NOW_MS, TP)[1]


@given(
    codec=st.integers(0, 4),
    changes=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 255)), min_size=1, max_size=3),
    cut=st.integers(0, 90),
    repairs_crc=st.booleans(),
    zstd_allowed=st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_whatever_passes_the_quick_look_is_admitted_unchanged(
    codec: int, changes: list[tuple[int, int]], cut: int, repairs_crc: bool, zstd_allowed: bool
) -> None:
    batch = batch_of(2, codec)
    for position, value in changes:
        batch[position % len(batch)] = value
    del batch[len(batch) - cut if cut > 85 else len(batch) :]
    if repairs_crc and len(batch) > 61:
        struct.pack_into(">I", batch, CRC_POSITION, crc_of(batch))
    before = bytes(batch)
    quick = plain_header(memoryview(batch), CONFIG, NOW_MS, zstd_allowed=zstd_allowed)
    try:
        admitted, header = admit(memoryview(batch), CONFIG, NOW_MS, TP, zstd_allowed=zstd_allowed)
    except BatchRefused:
        assert quick is None
        return
    if quick is not None:
        assert header == quick
        assert bytes(admitted) == before == bytes(batch)
