"""How much a batch takes, who reads what, and what has gone meanwhile: arithmetic only."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.model import TopicPartition
from headpond.spark.kafka.errors import DataLost
from headpond.spark.reading.losses import report
from headpond.spark.reading.offsets import Offsets
from headpond.spark.reading.options import Rate
from headpond.spark.reading.planning import OffsetRange, is_too_little, limit_in_proportion, ranges_between, split
from headpond.spark.source.data_loss import compare, late_arrivals

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
ID, OTHER_ID = bytes(range(16)), bytes(range(1, 17))


# --- rates ------------------------------------------------------------------------------------------------------------


def test_a_limit_is_shared_in_proportion_to_what_each_partition_has() -> None:
    start, latest = {A0: 0, A1: 100, B0: 0}, {A0: 900, A1: 200, B0: 0}
    assert limit_in_proportion(start, latest, 100) == {A0: 90, A1: 110, B0: 0}


def test_a_small_partition_gets_at_least_one_beside_a_large_one() -> None:
    assert limit_in_proportion({A0: 0, A1: 0}, {A0: 1_000_000, A1: 1}, 10) == {A0: 9, A1: 1}


def test_a_limit_above_what_there_is_takes_everything() -> None:
    assert limit_in_proportion({A0: 5, A1: 0}, {A0: 9, A1: 3}, 1 << 62) == {A0: 9, A1: 3}


def test_nothing_new_stays_nothing() -> None:
    assert limit_in_proportion({A0: 5}, {A0: 5}, 10) == {A0: 5}


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=8), st.integers(1, 20_000))
def test_a_limited_batch_never_goes_back_nor_beyond_and_always_moves(sizes: list[int], most: int) -> None:
    start = {TopicPartition("t", number): 7 for number in range(len(sizes))}
    latest = {tp: 7 + size for tp, size in zip(start, sizes, strict=True)}
    ends = limit_in_proportion(start, latest, most)
    assert all(start[tp] <= ends[tp] <= latest[tp] for tp in start)
    assert sum(ends[tp] - start[tp] for tp in start) <= most + len(sizes)
    assert ends != start or latest == start


def test_a_batch_waits_for_its_least_until_the_delay_is_over() -> None:
    rate = Rate(offsets_min=10, delay_ms_max=1_000)
    start, latest = {A0: 0, A1: 0}, {A0: 5, A1: 4}
    assert is_too_little(start, latest, rate, now_ms=5_000, last_batch_ms=4_500)
    assert not is_too_little(start, latest, rate, now_ms=5_501, last_batch_ms=4_500)
    assert not is_too_little(start, {A0: 5, A1: 5}, rate, now_ms=5_000, last_batch_ms=4_500)


def test_the_first_batch_waits_for_nothing() -> None:
    assert not is_too_little({A0: 0}, {A0: 1}, Rate(offsets_min=10), now_ms=5_000, last_batch_ms=None)


# --- ranges -----------------------------------------------------------------------------------------------------------


def test_what_is_read_lies_between_two_offsets_of_the_same_topic() -> None:
    start = Offsets({A0: 3, A1: 5}, {"a": ID})
    end = Offsets({A0: 10, A1: 5, B0: 4}, {"a": ID, "b": ID})
    assert ranges_between(start, end) == [OffsetRange(A0, 3, 10)]
    assert ranges_between(start, Offsets({A0: 10}, {"a": OTHER_ID})) == []


def ranges_of(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", number), 10, 10 + size) for number, size in enumerate(sizes)]


def test_without_wishes_each_partition_is_one_task() -> None:
    assert split(ranges_of(5, 6), partitions_min=None, records_per_partition_max=None) == ranges_of(5, 6)
    assert split(ranges_of(5, 6), partitions_min=2, records_per_partition_max=None) == ranges_of(5, 6)


def test_more_tasks_than_partitions_split_the_large_ones() -> None:
    parts = split(ranges_of(100, 1, 300), partitions_min=6, records_per_partition_max=None)
    assert [(one.tp.partition, one.size) for one in parts] == [
        (0, 100),
        (1, 1),
        (2, 75),
        (2, 75),
        (2, 75),
        (2, 75),
    ]


def test_no_task_reads_more_than_the_most() -> None:
    parts = split(ranges_of(10, 3), partitions_min=None, records_per_partition_max=4)
    assert [one.size for one in parts] == [3, 3, 4, 3]


def test_both_wishes_hold() -> None:
    parts = split(ranges_of(8), partitions_min=4, records_per_partition_max=4)
    assert [one.size for one in parts] == [2, 2, 2, 2]


@given(
    st.lists(st.integers(1, 1_000), max_size=6),
    st.none() | st.integers(1, 50),
    st.none() | st.integers(1, 500),
)
def test_splits_cover_every_offset_once_and_in_order(
    sizes: list[int], partitions_min: int | None, records_max: int | None
) -> None:
    whole = ranges_of(*sizes)
    parts = split(whole, partitions_min=partitions_min, records_per_partition_max=records_max)
    for one in whole:
        mine = [part for part in parts if part.tp == one.tp]
        assert mine[0].from_offset == one.from_offset and mine[-1].end_offset == one.end_offset
        assert all(left.end_offset == right.from_offset for left, right in pairwise(mine))
    assert all(part.size > 0 and (records_max is None or part.size <= records_max) for part in parts)


# --- data loss --------------------------------------------------------------------------------------------------------


def test_a_partition_that_nobody_has_seen_arrives() -> None:
    change = compare(Offsets({A0: 3}), Offsets({A0: 5, A1: 2}))
    assert (change.kept, change.arrived, change.losses) == ({A0: 3}, [A1], [])


def test_a_partition_that_is_gone_is_a_loss() -> None:
    change = compare(Offsets({A0: 3, A1: 1, B0: 1}), Offsets({A0: 5}))
    assert change.kept == {A0: 3}
    assert change.losses == ["a-1, b-0 are gone"]


def test_a_log_that_became_shorter_is_a_loss_and_goes_on_at_its_end() -> None:
    change = compare(Offsets({A0: 9}), Offsets({A0: 5}))
    assert change.kept == {A0: 5}
    assert change.losses == ["a-0 ends at offset 5 now, and was read up to 9 before"]


def test_a_topic_that_was_made_anew_is_a_loss_even_when_it_is_longer_than_before() -> None:
    change = compare(Offsets({A0: 3, A1: 3}, {"a": ID}), Offsets({A0: 9}, {"a": OTHER_ID}))
    assert (change.kept, change.arrived) == ({}, [A0])
    assert change.losses == ["topic a was deleted and created again"]


def test_a_new_partition_whose_first_records_are_gone_is_a_loss() -> None:
    assert late_arrivals({A0: 0, A1: 4}, Offsets({})) == ["the new a-1 begins at offset 4 instead of 0"]
    assert late_arrivals({A0: 4}, Offsets({A0: 9})) == []


def test_a_loss_is_an_error_or_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLost, match=r"^records may have been missed: x; y; set failOnDataLoss to false to go on"):
        report(["x", "y"], is_failure=True)
    with caplog.at_level(logging.WARNING, "headpond.spark"):
        report(["x", "y"], is_failure=False)
    assert "records may have been missed: x; y" in caplog.text
    report([], is_failure=True)
