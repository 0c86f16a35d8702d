"""Topics of thousands of partitions: whatever is done about them is done a limited number at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from headpond.cluster import writes
from headpond.cluster.delta import Delta
from headpond.cluster.topics import MorePartitions, NewTopic
from headpond.ports import STORE_OPERATIONS_MAX, Put
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from unit.cluster.small_cluster import SmallCluster, simulate

MANY = 1_300
IN_ONE_PIECE = 500


def test_subscribers_hear_of_many_partitions_in_pieces_and_the_loop_turns_in_between() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start()
        turn = 0
        heard: Counter[int] = Counter()
        pieces: list[Delta] = []
        wholes: list[Delta] = []

        def hear(delta: Delta) -> None:
            heard[turn] += len(delta.partitions)
            pieces.append(delta)

        async def count_turns() -> None:
            nonlocal turn
            while True:
                turn += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count_turns())
        cluster.follower.subscribe(hear, in_pieces=True)
        cluster.follower.subscribe(wholes.append)
        await cluster.metadata_writer.create_topic(NewTopic("a", MANY, 1))
        assert sum(heard.values()) == MANY, "who made the topic goes on when all have heard of it"
        assert max(heard.values()) <= IN_ONE_PIECE
        assert [delta.topics_created for delta in pieces if delta.partitions] == [(), (), ("a",)]
        (whole,) = [delta for delta in wholes if delta.topics_created]
        assert len(whole.partitions) == MANY
        heard.clear()
        await cluster.metadata_writer.delete_topic(cluster.image.topics["a"].topic_id)
        assert sum(heard.values()) == MANY and max(heard.values()) <= IN_ONE_PIECE
        counting.cancel()

    simulate(scenario)


def test_a_revision_that_is_still_being_told_is_waited_for() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start()
        follower = cluster.follower
        waited: list[int] = []
        told = 0

        async def wait(revision: int) -> None:
            await follower.wait_for(revision, timeout_s=60)
            waited.append(told)

        def hear(delta: Delta) -> None:
            nonlocal told
            told += len(delta.partitions)
            if told and len(waiting) == 0:
                waiting.append(asyncio.ensure_future(wait(delta.revision)))

        waiting: list[asyncio.Future[None]] = []
        follower.subscribe(hear, in_pieces=True)
        await cluster.metadata_writer.create_topic(NewTopic("a", MANY, 1))
        await waiting[0]
        assert waited == [MANY]

    simulate(scenario)


def test_no_more_partitions_are_written_down_than_a_transaction_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start()
        sizes: list[int] = []
        puts = writes.partition_puts

        def count(topic_id: Any, states: Iterable[Any], *, first: int = 0) -> list[Put]:
            made = puts(topic_id, states, first=first)
            sizes.append(len(made))
            return made

        monkeypatch.setattr(writes, "partition_puts", count)
        await cluster.metadata_writer.create_topic(NewTopic("a", MANY, 1))
        assert sum(sizes) == MANY and max(sizes) <= STORE_OPERATIONS_MAX
        sizes.clear()
        await cluster.metadata_writer.create_partitions(MorePartitions("a", 2 * MANY, None))
        assert sum(sizes) == MANY and max(sizes) <= STORE_OPERATIONS_MAX
        assert len(cluster.image.topics["a"].partitions) == 2 * MANY
        assert not cluster.image.loose

    simulate(scenario)
