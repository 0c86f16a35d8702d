"""A request for many partitions is answered some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from headpond.broker.handlers.fetch import list_offsets
from headpond.broker.handlers.topics import delete_records
from headpond.broker.requests.context import Context
from headpond.broker.requests.side_by_side import AT_ONCE, side_by_side
from headpond.coordination.slices import Slices
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.delete_records import DeleteRecordsRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from simulation.harness.clock import ManualClock
from simulation.harness.workers import SimulatedWorkers
from unit.broker.coordinator_cases import Coordinators, with_coordinators


class UnderWay:
    """Answers that take a turn of the loop; how many at once, at most."""

    def __init__(self) -> None:
        self.count = self.most = 0

    async def answer(self, number: int) -> int:
        self.count += 1
        self.most = max(self.most, self.count)
        await asyncio.sleep(0)
        self.count -= 1
        return 2 * number


def answered(answer: Callable[[int], Any], wanted: Iterable[int], clock: ManualClock) -> list[tuple[int, int]]:
    async def run() -> list[tuple[int, int]]:
        slices = Slices(clock, SimulatedWorkers(clock))

        async def collect() -> list[tuple[int, int]]:
            return [each async for each in side_by_side(answer, wanted, slices)]

        collecting = asyncio.ensure_future(collect())
        await clock.run_until(collecting)
        return collecting.result()

    return asyncio.run(run())


def test_answers_come_in_order_and_no_more_than_so_many_are_under_way() -> None:
    under_way, wanted = UnderWay(), range(10 * AT_ONCE + 1)
    assert answered(under_way.answer, wanted, ManualClock()) == [(number, 2 * number) for number in wanted]
    assert under_way.most == AT_ONCE


def test_the_loop_is_free_after_each_hundred_and_few_do_not_wait() -> None:
    clock = ManualClock()
    answered(UnderWay().answer, range(10 * AT_ONCE), clock)
    assert clock.monotonic() == pytest.approx(9 * 0.002)
    clock = ManualClock()
    answered(UnderWay().answer, range(AT_ONCE), clock)
    assert clock.monotonic() == 0


def test_nothing_wanted_is_nothing_answered() -> None:
    async def answer(_: int) -> int:
        raise AssertionError

    assert answered(answer, [], ManualClock()) == []


class SlowPartitions:
    """Every partition that there could be; each takes a turn of the loop to settle."""

    def __init__(self) -> None:
        self.under_way = UnderWay()

    def partition(self, tp: TopicPartition) -> Any:
        async def settle() -> None:
            await self.under_way.answer(0)

        async def advance_log_start(offset: int) -> None: ...

        log = SimpleNamespace(
            log_start_offset=0, config=SimpleNamespace(deletes=True), advance_log_start=advance_log_start
        )
        return SimpleNamespace(
            log=log, settle=settle, require_leader=lambda epoch=-1: None, high_watermark=tp.partition, leader_epoch=0
        )


TOPICS = [f"t{number}" for number in range(AT_ONCE // 2)]


def test_partitions_of_different_topics_are_asked_for_their_offsets_together() -> None:
    async def scenario(broker: Coordinators) -> None:
        partitions: Any = SlowPartitions()
        broker.broker.replicas = partitions
        topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsPartition
        wanted = [partition(partition_index=index, timestamp=-1) for index in (7, 3)]
        request = ListOffsetsRequest(topics=[topic(name=name, partitions=wanted) for name in TOPICS])
        answer = await list_offsets.handle(Context(broker.broker, broker.listener, 11), request)
        assert [each.name for each in answer.topics] == TOPICS
        assert {tuple((row.partition_index, row.offset) for row in each.partitions) for each in answer.topics} == {
            ((7, 7), (3, 3))
        }
        assert partitions.under_way.most == AT_ONCE

    with_coordinators(scenario)


def test_no_partition_is_asked_any_more_for_a_client_that_has_gone() -> None:
    async def scenario(broker: Coordinators) -> None:
        client = SimpleNamespace(closed=False)
        asked = []

        class Partitions(SlowPartitions):
            def partition(self, tp: TopicPartition) -> Any:
                found = super().partition(tp)

                async def settle() -> None:
                    asked.append(tp)
                    client.closed = True

                return SimpleNamespace(**{**vars(found), "settle": settle})

        broker.broker.replicas = Partitions()  # type: ignore[assignment]
        topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsPartition
        wanted = [partition(partition_index=index, timestamp=-1) for index in range(10 * AT_ONCE)]
        request = ListOffsetsRequest(topics=[topic(name="t", partitions=wanted)])
        answer = await list_offsets.handle(Context(broker.broker, broker.listener, 11, asker=client), request)
        codes = [row.error_code for row in answer.topics[0].partitions]
        assert len(asked) == 1 and codes == [0] + [ErrorCode.REQUEST_TIMED_OUT] * (10 * AT_ONCE - 1)

    with_coordinators(scenario)


def test_records_of_different_topics_are_deleted_together() -> None:
    async def scenario(broker: Coordinators) -> None:
        partitions: Any = SlowPartitions()
        broker.broker.replicas = partitions
        topic, partition = DeleteRecordsRequest.DeleteRecordsTopic, DeleteRecordsRequest.DeleteRecordsPartition
        wanted = [partition(partition_index=index, offset=-1) for index in (7, 3)]
        request = DeleteRecordsRequest(topics=[topic(name=name, partitions=wanted) for name in TOPICS])
        answer = await delete_records.handle(Context(broker.broker, broker.listener, 2), request)
        assert [each.name for each in answer.topics] == TOPICS
        assert {tuple(row.partition_index for row in each.partitions) for each in answer.topics} == {(7, 3)}
        assert partitions.under_way.most == AT_ONCE

    with_coordinators(scenario)
