"""The follower: nothing is left out and nothing comes twice, whatever the watch does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from headpond.cluster.delta import Delta
from headpond.cluster.follower import ImageFollower
from headpond.cluster.image import MetadataImage
from headpond.cluster.topics import NewTopic
from headpond.model import BrokerError, ErrorCode, InvariantBroken
from headpond.ports import Changes, Put
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import SimulatedMetadataStore, StoreServer
from unit.cluster.small_cluster import LoopTasks, SmallCluster, simulate


class BreakingStore(SimulatedMetadataStore):
    """Its first ``breaks`` watches fail after one change, having told it twice."""

    breaks = 3

    async def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[Changes]:
        async for changes in super().watch(prefix, after_revision=after_revision):
            yield changes
            if self.breaks:
                self.breaks -= 1
                yield changes
                raise ConnectionResetError("the connection to the store broke")


def put(server: StoreServer, number: int) -> None:
    server.transact([], [Put(f"features/f{number}", b'{"level": 1}')])


def test_a_watch_that_breaks_is_taken_up_where_the_image_stands() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        follower = ImageFollower(BreakingStore(server, clock, lambda: 0.001), MetadataImage(), clock, LoopTasks())
        heard: list[int] = []
        follower.subscribe(lambda delta: heard.append(delta.revision))
        await follower.start()
        for number in range(10):
            put(server, number)
        await follower.wait_for(10, timeout_s=60)
        assert heard[-10:] == list(range(1, 11))
        assert len(follower.image.features) == 10

    simulate(scenario)


def test_a_watch_whose_history_was_forgotten_is_replaced_by_a_listing() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        store = SimulatedMetadataStore(server, clock, lambda: 0.001)
        follower = ImageFollower(store, MetadataImage(), clock, LoopTasks())
        deltas: list[Delta] = []
        await follower.start()
        follower.subscribe(deltas.append)
        store.stall_watches(True)
        for number in range(5):
            put(server, number)
        server.compact(server.revision)
        store.stall_watches(False)
        await clock.sleep(5)  # nobody waits for a revision: the watch must find out by itself
        assert follower.image.revision == 5
        assert [delta.features for delta in deltas] == [("f0", "f1", "f2", "f3", "f4")]
        put(server, 5)
        await follower.wait_for(6, timeout_s=60)
        assert deltas[-1].features == ("f5",)

    simulate(scenario)


def test_waiting_ends_when_the_time_is_up_and_not_before() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        follower = ImageFollower(
            SimulatedMetadataStore(server, clock, lambda: 0.001), MetadataImage(), clock, LoopTasks()
        )
        await follower.start()
        started = clock.monotonic()
        with pytest.raises(BrokerError) as caught:
            await follower.wait_for(1, timeout_s=7.5)
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert 7.5 <= clock.monotonic() - started < 7.6

    simulate(scenario)


def test_those_who_wait_go_on_after_the_subscribers_have_heard() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start()
        heard: list[str] = []
        cluster.follower.subscribe(lambda delta: heard.extend(delta.topics_created))
        await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1))
        assert heard == ["a"]

    simulate(scenario)


def test_a_subscriber_that_fails_stops_the_follower_instead_of_being_left_behind() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        tasks = LoopTasks()
        follower = ImageFollower(SimulatedMetadataStore(server, clock, lambda: 0.001), MetadataImage(), clock, tasks)
        await follower.start()

        def fail(delta: Delta) -> None:
            raise OSError("no")

        follower.subscribe(fail)
        put(server, 0)
        with pytest.raises(InvariantBroken):
            await tasks.tasks[0]

    simulate(scenario)


def test_a_store_that_is_closed_ends_the_follower() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        tasks = LoopTasks()
        store = SimulatedMetadataStore(server, clock, lambda: 0.001)
        await ImageFollower(store, MetadataImage(), clock, tasks).start()
        await clock.sleep(0.1)
        await store.close()
        await asyncio.wait_for(tasks.tasks[0], None)

    simulate(scenario)
