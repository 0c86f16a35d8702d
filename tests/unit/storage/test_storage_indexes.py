"""The two index files: Kafka's bytes, lookups that equal a linear scan, and files that make no sense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.storage.log.offset_index import OffsetIndex
from headpond.storage.log.time_index import TimeIndex

ENTRIES = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5_000)), max_size=40)


def build(steps: list[tuple[int, int]], base_offset: int = 1_000) -> tuple[OffsetIndex, list[tuple[int, int]]]:
    index = OffsetIndex(base_offset)
    offset, position = base_offset, 0
    entries = []
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.append(offset, position)
        entries.append((offset, position))
    return index, entries


def test_an_entry_is_two_big_endian_numbers_relative_to_the_segment() -> None:
    index, _ = build([(5, 4_200), (1, 100)])
    assert index.encode() == bytes.fromhex("00000005 00001068 00000006 000010cc")
    assert index.encode(1) == bytes.fromhex("00000006 000010cc")


@given(ENTRIES, st.integers(900, 3_500))
def test_lookups_by_offset_equal_a_linear_scan(steps: list[tuple[int, int]], offset: int) -> None:
    index, entries = build(steps)
    assert index.floor(offset) == max(((p, o) for o, p in entries if o <= offset), default=(0, None))


@given(ENTRIES, st.integers(0, 200_000))
def test_the_batch_found_before_a_position_ends_at_or_before_it(steps: list[tuple[int, int]], position: int) -> None:
    index, entries = build(steps)
    below = [p for _, p in entries if p <= position]
    assert index.whole_batch_before(position) == (below[-2] if len(below) > 1 else 0)


@given(ENTRIES, st.integers(900, 3_500))
def test_truncation_drops_the_entries_at_or_behind_the_end(steps: list[tuple[int, int]], end_offset: int) -> None:
    index, entries = build(steps)
    index.truncate(end_offset)
    expected, _ = build([])
    for offset, position in entries:
        if offset < end_offset:
            expected.append(offset, position)
    assert index.encode() == expected.encode()


@given(ENTRIES)
def test_an_index_reads_back_what_it_wrote(steps: list[tuple[int, int]]) -> None:
    index, _ = build(steps)
    again = OffsetIndex.decode_prefix(1_000, index.encode(), size_bytes=1 << 30)
    assert again.encode() == index.encode()


@pytest.mark.parametrize(
    ("data", "entries_kept"),
    [
        (b"\0\0\0\1\0\0\0\7" + b"\0\0\0", 1),  # half an entry
        (b"\0\0\0\1\0\0\0\7" + bytes(8), 1),  # zeros of a preallocated file
        (bytes(16), 0),
        (b"\0\0\0\5\0\0\0\7" + b"\0\0\0\5\0\0\0\x09", 1),  # an offset twice
        (b"\0\0\0\5\0\0\0\7" + b"\0\0\0\6\0\0\0\x07", 1),  # a position twice
        (b"\0\0\0\5\0\0\0\7" + b"\0\0\0\6\0\0\1\x07", 1),  # behind the segment's end
        (b"\xff\0\0\5\0\0\0\7", 0),  # negative
    ],
)
def test_of_an_index_file_that_makes_no_sense_the_good_beginning_is_found(data: bytes, entries_kept: int) -> None:
    assert len(OffsetIndex.decode_prefix(0, data, size_bytes=100)) == entries_kept


def test_a_time_index_entry_is_a_timestamp_and_a_relative_offset() -> None:
    index = TimeIndex(100)
    index.maybe_append(1_700_000_000_000, 105)
    assert index.encode() == bytes.fromhex("0000018bcfe56800 00000005")
    assert TimeIndex.decode_prefix(100, index.encode()).last == (1_700_000_000_000, 105)


def test_a_time_index_takes_only_timestamps_that_grow() -> None:
    index = TimeIndex(0)
    for timestamp, offset in ((5, 1), (5, 2), (4, 3), (9, 4)):
        index.maybe_append(timestamp, offset)
    assert list(index.timestamps) == [5, 9]
    assert index.last == (9, 4)
    assert TimeIndex(7).last == (-1, 7)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=30), st.integers(0, 300))
def test_searches_by_time_equal_a_linear_scan(steps: list[tuple[int, int]], target: int) -> None:
    index = TimeIndex(50)
    timestamp, offset, entries = 0, 50, []
    for timestamp_step, offset_step in steps:
        timestamp, offset = timestamp + timestamp_step, offset + offset_step
        index.maybe_append(timestamp, offset)
        entries.append((timestamp, offset))
    assert index.floor_offset(target) == max(((t, o) for t, o in entries if t <= target), default=(0, 50))[1]
    index.truncate(60)
    assert index.encode() == TimeIndex.decode_prefix(50, index.encode()).encode()
    assert all(relative + 50 < 60 for relative in index.relative_offsets)


@pytest.mark.parametrize("tail", [b"\0", bytes(12), bytes.fromhex("0000000000000005 00000009")])
def test_of_a_time_index_file_that_makes_no_sense_the_good_beginning_is_found(tail: bytes) -> None:
    good = bytes.fromhex("0000000000000005 00000003")
    assert len(TimeIndex.decode_prefix(0, good + tail)) == 1
