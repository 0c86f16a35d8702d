"""Markers on this broker's partitions: who may write one, what it does to the last stable offset, who hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headpond.coordination.home import Ended, Producer
from headpond.coordination.transactions.markers import Marker
from headpond.model import ErrorCode, TopicPartition
from headpond.storage.producers.txn_index import AbortedTxn
from unit.broker.transaction_rig import PARTITIONS, World, data


def run(test: Callable[[World], Awaitable[None]]) -> None:
    async def start() -> None:
        world = await World().start()
        await test(world)
        await world.rig.tasks.cancel_all()

    asyncio.run(start())


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_ends_the_transaction_and_is_durable_when_it_is_answered(is_commit: bool) -> None:
    async def test(world: World) -> None:
        await world.send(data())
        partition = world.replica().partition
        assert partition.last_stable_offset == 0
        assert await world.end(epoch=1, is_commit=is_commit, coordinator_epoch=4) == ErrorCode.NONE
        assert partition.log.flushed_end_offset == partition.last_stable_offset == partition.high_watermark == 2
        assert partition.log.aborted == ([] if is_commit else [AbortedTxn(5, 0, 1, 2)])
        state = partition.log.producers.get(5)
        assert state is not None and (state.epoch, state.coordinator_epoch, state.txn_first_offset) == (1, 4, -1)

    run(test)


def test_the_last_stable_offset_moves_with_the_flush_of_the_marker_and_not_before() -> None:
    async def test(world: World) -> None:
        await world.send(data())
        replica = world.replica()
        seen: list[int] = []

        class Fetcher:
            def news(self, _: object) -> None:
                seen.append(replica.partition.last_stable_offset)

        replica.fetch_waiters[Fetcher()] = None
        ending = asyncio.ensure_future(world.end(epoch=1, is_commit=True))
        while replica.partition.log.log_end_offset < 2:
            assert replica.partition.last_stable_offset == 0
            await asyncio.sleep(0)
        assert replica.partition.last_stable_offset == 0
        assert await ending == ErrorCode.NONE
        assert seen[-1] == 2  # a parked fetch that looks when it is told sees the records

    run(test)


def test_the_oldest_open_transaction_holds_the_last_stable_offset() -> None:
    async def test(world: World) -> None:
        await world.send(data(producer_id=5))
        await world.send(data(producer_id=6))
        await world.end(producer_id=6, epoch=1, is_commit=True)
        partition = world.replica().partition
        assert (partition.last_stable_offset, partition.high_watermark) == (0, 3)
        await world.end(producer_id=5, epoch=1, is_commit=True)
        assert partition.last_stable_offset == 4

    run(test)


def test_older_epochs_of_producer_and_coordinator_are_fenced() -> None:
    async def test(world: World) -> None:
        await world.send(data(epoch=3))
        ended = [
            await world.end(epoch=2, is_commit=True, version=1),
            await world.end(epoch=3, is_commit=True, version=2),  # it would have to be higher
            await world.end(epoch=4, is_commit=True, version=2, coordinator_epoch=7),
            await world.end(epoch=4, is_commit=True, version=2, coordinator_epoch=7),  # again: does no harm
            await world.end(epoch=4, is_commit=True, version=2, coordinator_epoch=6),
        ]
        assert ended == [47, 47, 0, 0, 52]

    run(test)


def test_the_first_version_ends_a_transaction_with_its_own_epoch() -> None:
    async def test(world: World) -> None:
        await world.send(data(epoch=3), version=11)
        assert await world.end(epoch=3, is_commit=True, version=1) == ErrorCode.NONE
        assert (await world.send(data(1, epoch=3), version=11))[0].error_code == 0

    run(test)


def test_each_partition_is_answered_for() -> None:
    async def test(world: World) -> None:
        nowhere = TopicPartition("nowhere", 0)
        world.replica(1).partition.resign(1)
        codes = await world.markers.write(Marker(5, 1, True, 0, 2), [PARTITIONS[0], PARTITIONS[1], nowhere])
        assert codes == {
            PARTITIONS[0]: ErrorCode.NONE,
            PARTITIONS[1]: ErrorCode.NOT_LEADER_OR_FOLLOWER,
            nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await world.end(producer_id=-1, epoch=0, is_commit=True) == ErrorCode.UNKNOWN_SERVER_ERROR

    run(test)


def test_the_coordinator_is_told_how_it_went() -> None:
    async def test(world: World) -> None:
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        world.markers.send(Marker(5, 1, True, 0, 2), PARTITIONS[:1], answered.set_result)
        assert await answered == {PARTITIONS[0]: ErrorCode.NONE}

    run(test)


def test_the_group_coordinator_hears_of_a_marker_in_its_topic_when_it_is_appended() -> None:
    async def test(world: World) -> None:
        ending = asyncio.ensure_future(world.end(epoch=1, is_commit=True, partition=2))
        while not world.replica(2).partition.log.log_end_offset:
            assert world.coordinator.endings == []
            await asyncio.sleep(0)
        assert world.coordinator.endings == [(0, Ended(Producer(5, 1), is_commit=True))]
        assert await ending == ErrorCode.NONE
        await world.end(epoch=1, is_commit=True)
        assert len(world.coordinator.endings) == 1

    run(test)


def test_no_marker_is_written_while_its_group_coordinator_would_not_hear_of_it() -> None:
    async def test(world: World) -> None:
        world.coordinator.serves_offsets = False
        assert await world.end(epoch=1, is_commit=True, partition=2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.replica(2).partition.log.log_end_offset == 0

    run(test)


def test_a_marker_waits_for_room_as_any_append_does() -> None:
    async def test(world: World) -> None:
        world.rig.reconfigure(segment_bytes=150)
        for epoch in range(6):
            assert await world.end(epoch=epoch, is_commit=True) == ErrorCode.NONE
        log = world.replica().partition.log
        assert log.log_end_offset == 6 and len(log.segments) > 2

    run(test)
