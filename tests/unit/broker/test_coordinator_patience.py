"""What a coordinator has appended must be committed within ``offsets.commit.timeout.ms``, or nobody knows (KIP-848)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from headpond.broker.coordinators.home import InternalTopic
from headpond.cluster.topics import NewTopic
from headpond.model import BrokerError, ErrorCode
from headpond.model.waits import Waiter
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.replication.deadlines import SWEEP_SECONDS, Deadlines
from headpond.replication.partition import Partition
from simulation.harness.clock import ManualClock
from unit.broker.asking import Asker
from unit.broker.coordinator_cases import loaded
from unit.cluster.small_cluster import SmallCluster, with_cluster
from unit.coordination.test_coordinator_runtime import Home
from unit.storage.storage_rig import Rig, make_batch

TIMEOUT_MS = 5_000


class Told:
    """Notes what it is told, the first time."""

    def __init__(self) -> None:
        self.first: list[ErrorCode | None] = []

    def reached(self) -> None:
        self.first = self.first or [None]

    def failed(self, error: BrokerError) -> None:
        self.first = self.first or [ErrorCode(error.code)]


class Topic:
    """One partition, of which nothing is committed until the test says so."""

    def __init__(self, rig: Rig, partition: Partition) -> None:
        self.rig = rig
        self.clock = rig.clock
        self.partition = partition
        replicas: Any = SimpleNamespace(get=lambda _: SimpleNamespace(partition=partition))
        self.home = InternalTopic("__consumer_offsets", replicas, rig.clock, commit_timeout_ms=lambda: TIMEOUT_MS)
        self.told: list[Told] = []

    def wait(self) -> None:
        self.told.append(Told())
        self.home.when_committed(0, 1, self.told[-1])

    @property
    def heard(self) -> list[ErrorCode | None]:
        return [first for told in self.told for first in told.first]

    async def commit(self) -> None:
        await self.partition.log.flush()


def with_topic(scenario: Callable[[Topic], Awaitable[None]]) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        partition = rig.partition(log)
        partition.lead(0)
        await rig.append(log, make_batch(1))
        await scenario(Topic(rig, partition))
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_who_waits_for_too_long_is_told_so_once() -> None:
    async def scenario(topic: Topic) -> None:
        topic.wait()
        topic.clock.advance(4.9)
        topic.wait()
        assert topic.heard == []
        topic.clock.advance(2 * SWEEP_SECONDS + 0.1)
        assert topic.heard == [ErrorCode.REQUEST_TIMED_OUT]
        await topic.commit()
        assert topic.heard == [ErrorCode.REQUEST_TIMED_OUT, None]
        topic.clock.advance(10)
        assert topic.heard == [ErrorCode.REQUEST_TIMED_OUT, None]

    with_topic(scenario)


def test_what_is_committed_in_time_knows_no_limit() -> None:
    async def scenario(topic: Topic) -> None:
        topic.wait()
        await topic.commit()
        topic.clock.advance(60)
        assert topic.heard == [None]

    with_topic(scenario)


def test_the_awaiting_kind_has_the_same_limit() -> None:
    async def scenario(topic: Topic) -> None:
        topic.partition.log.on_flushed = lambda _: None  # its flush is never heard of
        waiting = asyncio.ensure_future(topic.home.committed(0, 1))
        await topic.clock.run_until(waiting)
        error = waiting.exception()
        assert isinstance(error, BrokerError) and error.code is ErrorCode.REQUEST_TIMED_OUT
        assert topic.clock.monotonic() >= TIMEOUT_MS / 1_000

    with_topic(scenario)


class Slow(Home):
    """Nothing that is appended is committed in time."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._deadlines = Deadlines(clock)

    def when_committed(self, partition: int, end_offset: int, waiter: Waiter) -> None:
        self._deadlines.begin(waiter, TIMEOUT_MS)


def test_a_commit_that_is_not_durable_in_time_is_coordinator_not_available_and_may_count_later() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        await cluster.metadata_writer.create_topic(NewTopic("payments", 1, 1), timeout_ms=1_000)
        groups = Asker(cluster).broker.groups
        groups.runtime._home = Slow(cluster.clock)
        assert await groups.topic.leader_for("readers") == 1
        for partition in range(50):
            groups.runtime.lead(partition, 0)
        await loaded(groups.runtime)
        row = OffsetCommitRequest.OffsetCommitRequestPartition(0, 7)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="payments", partitions=[row])
        request = OffsetCommitRequest(group_id="readers", topics=[topic])
        answered: asyncio.Future[BrokerError | None] = asyncio.get_running_loop().create_future()
        groups.write_now(
            "readers",
            lambda machine: machine.offsets.commit(request, 9),
            lambda answer, failed: answered.set_result(failed),
        )
        failed = await answered
        assert failed is not None and failed.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert cluster.clock.monotonic() >= TIMEOUT_MS / 1_000
        held = groups.read("readers", lambda machine: machine.offsets.of_group("readers"))
        assert held["payments"][0].offset == 7

    with_cluster(scenario)
