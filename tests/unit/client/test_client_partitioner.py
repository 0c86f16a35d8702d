"""Which partition a record goes to: the same as with every other client of the same topic."""

from __future__ import annotations

import itertools

from headpond.client.metadata import PartitionView, TopicView
from headpond.client.partitioner import StickyPartitions, murmur2, partition_for_key
from headpond.model import ErrorCode
from simulation.harness.chance import SeededRandom


def test_hashes_are_those_of_kafkas_own_clients() -> None:
    # The values that Kafka's own tests expect, as unsigned numbers.
    known = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
        b"": 275646681,
    }
    assert {key: murmur2(key) for key in known} == {key: value & 0xFFFFFFFF for key, value in known.items()}


def test_a_keys_partition_is_its_positive_hash_modulo_the_count() -> None:
    assert partition_for_key(b"foobar", 12) == (-790332482 & 0x7FFFFFFF) % 12


def topic(leaders: list[int]) -> TopicView:
    partitions = tuple(PartitionView(index, leader, 0, (), ()) for index, leader in enumerate(leaders))
    return TopicView("t", bytes(16), ErrorCode.NONE, False, partitions)


def test_records_without_a_key_stay_together_for_a_batch_and_then_move_on() -> None:
    sticky = StickyPartitions(SeededRandom(), bytes_until_switch=100)
    chosen = [sticky.choose(topic([1, 1, 1]), 10) for _ in range(100)]
    runs = [chosen[start : start + 10] for start in range(0, 100, 10)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(before[0] != after[0] for before, after in itertools.pairwise(runs))
    assert set(chosen) == {0, 1, 2}


def test_a_partition_without_a_leader_is_not_chosen_while_another_has_one() -> None:
    sticky = StickyPartitions(SeededRandom(), bytes_until_switch=1)
    assert {sticky.choose(topic([-1, 1, -1, 2]), 10) for _ in range(50)} == {1, 3}
    assert {sticky.choose(topic([-1]), 10) for _ in range(3)} == {0}
