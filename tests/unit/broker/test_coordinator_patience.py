"""What a coordinator has appended must be committed within ``offsets.commit.timeout.ms``, or nobody knows (KIP-848)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from headpond.broker.coordinators.home import InternalTopic
from headpond.broker.replicas.patience import Patience
from headpond.cluster.topics import NewTopic
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from simulation.harness.clock import ManualClock
from unit.broker.asking import Asker
from unit.broker.coordinator_cases import loaded
from unit.cluster.small_cluster import SmallCluster, with_cluster
from unit.coordination.test_coordinator_runtime import Home

TIMEOUT_MS = 5_000


class Topic:
    """One partition, of which nothing is committed until the test says so."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.replica = SimpleNamespace(partition=SimpleNamespace(is_leader=True, high_watermark=0), produce_waiters=[])
        replicas: Any = SimpleNamespace(get=lambda _: self.replica)
        self.home = InternalTopic("__consumer_offsets", replicas, self.clock, commit_timeout_ms=lambda: TIMEOUT_MS)
        self.heard: list[ErrorCode | None] = []

    def wait(self) -> None:
        self.home.when_committed(0, 1, lambda failed: self.heard.append(None if failed is None else failed.code))

    def commit(self) -> None:
        self.replica.partition.high_watermark = 1
        for _, waiter, index in self.replica.produce_waiters:
            waiter.reached(index)


def test_who_waits_for_too_long_is_told_so_once() -> None:
    topic = Topic()
    topic.wait()
    topic.clock.advance(4.9)
    topic.wait()
    assert topic.heard == []
    topic.clock.advance(0.2)
    assert topic.heard == [ErrorCode.REQUEST_TIMED_OUT]
    topic.commit()
    assert topic.heard == [ErrorCode.REQUEST_TIMED_OUT, None]
    topic.clock.advance(10)
    assert topic.heard == [ErrorCode.REQUEST_TIMED_OUT, None]


def test_what_is_committed_in_time_knows_no_limit() -> None:
    topic = Topic()
    topic.wait()
    topic.commit()
    topic.clock.advance(60)
    assert topic.heard == [None]


def test_the_awaiting_kind_has_the_same_limit() -> None:
    async def scenario() -> None:
        topic = Topic()
        waiting = asyncio.ensure_future(topic.home.committed(0, 1))
        await topic.clock.run_until(waiting)
        error = waiting.exception()
        assert isinstance(error, BrokerError) and error.code is ErrorCode.REQUEST_TIMED_OUT
        assert topic.clock.monotonic() >= TIMEOUT_MS / 1_000

    asyncio.run(scenario())


def test_those_who_are_done_are_forgotten_as_others_come() -> None:
    patience = Patience(ManualClock(), lambda: 5.0)
    for _ in range(100):
        waiting = SimpleNamespace(is_over=False, time_is_up=lambda: None)
        patience.begin(waiting)
        waiting.is_over = True
    assert len(patience) == 1


class Slow(Home):
    """Nothing that is appended is committed in time."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._patience = Patience(clock, lambda: TIMEOUT_MS / 1_000)

    def when_committed(self, partition: int, end_offset: int, done: Callable[[BrokerError | None], None]) -> None:
        self._patience.begin(
            SimpleNamespace(is_over=False, time_is_up=lambda: done(BrokerError(ErrorCode.REQUEST_TIMED_OUT)))
        )


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
