"""Producer snapshots: byte for byte those of Kafka, for a log that Kafka wrote.

The log was written by Apache Kafka 4.3.1: seven single batches of an idempotent producer, a zstd batch of 30 records of
another, three transactions of a third (committed, aborted, committed), an open transaction of a fourth, one more of
the first. The snapshot is the one that it left at its clean shutdown, at offset 46.
"""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.model import TopicPartition
from headpond.protocol.records.header import crc_of, read_header
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.producers.snapshot import CorruptSnapshot, SnapshotEntry, decode_snapshot
from headpond.storage.producers.state import CompletedTxn
from support.other_side import encode_snapshot

KAFKAS_LOG = base64.b64decode(
    "AAAAAAAAAAAAAAA6AAAAAAIqUryyAAAAAAAAAAABoeEeJLsAAAGh4R4kuwAAAAAAAAAAAAAAAAAAAAAAARAAAAABBHYwAAAAAAAAAAABAAAAOgAAAAAC"
    "VhCG0wAAAAAAAAAAAaHhHijoAAABoeEeKOgAAAAAAAAAAAAAAAAAAQAAAAEQAAAAAQR2MQAAAAAAAAAAAgAAADoAAAAAAtJC/kIAAAAAAAAAAAGh4R4o"
    "7AAAAaHhHijsAAAAAAAAAAAAAAAAAAIAAAABEAAAAAEEdjIAAAAAAAAAAAMAAAA6AAAAAALm5rpEAAAAAAAAAAABoeEeKPEAAAGh4R4o8QAAAAAAAAAA"
    "AAAAAAADAAAAARAAAAABBHYzAAAAAAAAAAAEAAAAOgAAAAAC6BawaAAAAAAAAAAAAaHhHij0AAABoeEeKPQAAAAAAAAAAAAAAAAABAAAAAEQAAAAAQR2"
    "NAAAAAAAAAAABQAAADoAAAAAAhg0WjAAAAAAAAAAAAGh4R4o9wAAAaHhHij3AAAAAAAAAAAAAAAAAAUAAAABEAAAAAEEdjUAAAAAAAAAAAYAAAA6AAAA"
    "AAKUx02tAAAAAAAAAAABoeEeKPoAAAGh4R4o+gAAAAAAAAAAAAAAAAAGAAAAARAAAAABBHY2AAAAAAAAAAAHAAAArAAAAAACl4GHHQAEAAAAHQAAAaHh"
    "Hij/AAABoeEeKP8AAAAAAAAAAQAAAAAAAAAAAB4otS/9AFiVAwCEAnAAAAABZHYAcAAAAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODoeAAKnFJxX"
    "cLKCUwrOKzhZwSkF5xWcrOCUgvMKTlZwSsF5BScrOKXgvIKTFZxScF7ByQpOKTiv4GQFpxScV3CyglOUq1MbASMAAAAAAAAAJQAAADkAAAAAAnrc7swA"
    "EAAAAAAAAAGh4R4xVAAAAaHhHjFUAAAAAAAAAAIAAAAAAAAAAAABDgAAAAECeAAAAAAAAAAAJgAAAEIAAAAAArZ2THQAMAAAAAAAAAGh4R4yIAAAAaHh"
    "HjIgAAAAAAAAAAIAAP////8AAAABIAAAAAgAAAABDAAAAAAAAAAAAAAAAAAAJwAAADkAAAAAAu2vas4AEAAAAAAAAAGh4R4x3QAAAaHhHjHdAAAAAAAA"
    "AAIAAAAAAAEAAAABDgAAAAECeAAAAAAAAAAAKAAAAEIAAAAAApfM6CkAMAAAAAAAAAGh4R4ybgAAAaHhHjJuAAAAAAAAAAIAAP////8AAAABIAAAAAgA"
    "AAAADAAAAAAAAAAAAAAAAAAAKQAAADkAAAAAAmUZ3lAAEAAAAAAAAAGh4R4ydAAAAaHhHjJ0AAAAAAAAAAIAAAAAAAIAAAABDgAAAAECeAAAAAAAAAAA"
    "KgAAAEIAAAAAAjMWi6oAMAAAAAAAAAGh4R4yrAAAAaHhHjKsAAAAAAAAAAIAAP////8AAAABIAAAAAgAAAABDAAAAAAAAAAAAAAAAAAAKwAAAEgAAAAA"
    "An8FrtoAEAAAAAEAAAGh4R40zwAAAaHhHjTPAAAAAAAAAAMAAAAAAAAAAAACFAAAAAEIb3BlbgAWAAACAQpvcGVuMgAAAAAAAAAALQAAADwAAAAAAkwp"
    "KZgAAAAAAAAAAAGh4R404AAAAaHhHjTgAAAAAAAAAAAAAAAAAAcAAAABFAAAAAEIbGFzdAA="
)
KAFKAS_SNAPSHOT = base64.b64decode(
    "AAF5fdWYAAAABAAAAAAAAAAAAAAAAAAHAAAAAAAAAC0AAAAAAAABoeEeNOD///////////////8AAAAAAAAAAQAAAAAAHQAAAAAAAAAkAAAAHQAAAaHh"
    "Hij/////////////////AAAAAAAAAAIAAAAAAAIAAAAAAAAAKQAAAAAAAAGh4R4yrAAAAAD//////////wAAAAAAAAADAAAAAAABAAAAAAAAACwAAAAB"
    "AAABoeEeNM//////AAAAAAAAACs="
)
TP = TopicPartition("snap", 0)


def replayed(log: bytes) -> tuple[ProducerStates, list[CompletedTxn]]:
    states = ProducerStates(TP)
    completed = []
    position = 0
    while position < len(log):
        header = read_header(log, position)
        batch = log[position : position + header.size_bytes]
        assert crc_of(batch) == header.crc
        if (ended := states.replay(batch, header, now_ms=0)) is not None:
            completed.append(ended)
        position += header.size_bytes
    return states, completed


def test_snapshot_of_kafka_is_read_and_written_byte_for_byte() -> None:
    entries = decode_snapshot(KAFKAS_SNAPSHOT)
    assert [entry.producer_id for entry in entries] == [0, 1, 2, 3]
    assert entries[1] == SnapshotEntry(1, 0, 29, 36, 29, 1_794_778_212_607, -1, -1)
    assert entries[3].txn_first_offset == 43
    assert encode_snapshot(entries) == KAFKAS_SNAPSHOT


def test_replay_of_kafkas_log_gives_kafkas_snapshot() -> None:
    states, completed = replayed(KAFKAS_LOG)
    assert states.end_offset == 46
    assert sorted(decode_snapshot(states.snapshot())) == sorted(decode_snapshot(KAFKAS_SNAPSHOT))
    # Kafka's transaction index of this log holds the one aborted transaction: 39 to 40, last stable offset 41.
    assert completed == [
        CompletedTxn(2, 37, 38, is_aborted=False, last_stable_offset=39),
        CompletedTxn(2, 39, 40, is_aborted=True, last_stable_offset=41),
        CompletedTxn(2, 41, 42, is_aborted=False, last_stable_offset=43),
    ]
    assert states.first_undecided_offset == 43


def test_loading_kafkas_snapshot_loses_nothing() -> None:
    states = ProducerStates(TP)
    states.load(KAFKAS_SNAPSHOT, 46, now_ms=0)
    assert sorted(decode_snapshot(states.snapshot())) == sorted(decode_snapshot(KAFKAS_SNAPSHOT))
    assert (states.end_offset, states.first_undecided_offset, len(states)) == (46, 43, 4)
    known = states.get(1)
    assert known is not None
    assert known.batches[0][:4] == (0, 29, 7, 36)


def test_empty_snapshot_has_ten_bytes() -> None:
    assert len(encode_snapshot([])) == 10
    assert decode_snapshot(encode_snapshot([])) == []


entries = st.builds(
    SnapshotEntry,
    st.integers(0, 2**62),
    st.integers(-1, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**62),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**62),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**62),
)


@given(st.lists(entries, max_size=20))
def test_snapshots_survive(written: list[SnapshotEntry]) -> None:
    assert decode_snapshot(encode_snapshot(written)) == written


@given(st.integers(0, len(KAFKAS_SNAPSHOT) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(position: int, change: int) -> None:
    damaged = bytearray(KAFKAS_SNAPSHOT)
    damaged[position] ^= change
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(damaged)


@given(st.integers(0, len(KAFKAS_SNAPSHOT) - 1))
def test_any_missing_end_is_noticed(size: int) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(KAFKAS_SNAPSHOT[:size])


def test_bytes_that_the_count_does_not_cover_are_noticed_even_with_a_good_crc() -> None:
    from headpond.protocol.records.checksum import crc32c

    body = (7).to_bytes(4, "big") + KAFKAS_SNAPSHOT[10:]
    with pytest.raises(CorruptSnapshot, match="7 entries"):
        decode_snapshot(b"\x00\x01" + crc32c(body).to_bytes(4, "big") + body)


def test_corrupt_snapshot_leaves_the_state_as_it_was() -> None:
    states, _ = replayed(KAFKAS_LOG)
    before = states.snapshot()
    with pytest.raises(CorruptSnapshot):
        states.load(KAFKAS_SNAPSHOT[:-1], 9, now_ms=0)
    assert (states.snapshot(), states.end_offset) == (before, 46)
