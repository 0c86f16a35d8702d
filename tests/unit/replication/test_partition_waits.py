"""One way to wait for an offset: a place in a queue, told when the offset is reached, lost or too late."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.model import BrokerError, ErrorCode, NotLeader, StorageFailed
from headpond.model.waits import OffsetWaits
from headpond.replication.deadlines import SWEEP_SECONDS
from headpond.replication.partition import Partition
from unit.storage.storage_rig import Rig, make_batch
from unit.test_architecture import module_of, sources

WAITING_PLACES = {
    "replication.partition": "until it is committed",
    "storage.log.log": "until it is durable",
}


class Told:
    def __init__(self) -> None:
        self.codes: list[int] = []

    def reached(self) -> None:
        self.codes.append(ErrorCode.NONE)

    def failed(self, error: BrokerError) -> None:
        self.codes.append(error.code)


@given(st.lists(st.integers(1, 20)), st.integers(0, 21))
def test_those_whose_offset_is_reached_are_told_in_the_order_of_the_offsets(ends: list[int], reached: int) -> None:
    waits, order = OffsetWaits(), []

    class Noted(Told):
        def __init__(self, end_offset: int) -> None:
            super().__init__()
            self.end_offset = end_offset

        def reached(self) -> None:
            order.append(self.end_offset)

    for end_offset in ends:
        waits.add(end_offset, Noted(end_offset))
    waits.reach(reached)
    assert order == sorted(end for end in ends if end <= reached)
    assert [end for end, _ in waits] == sorted(end for end in ends if end > reached)


def test_who_waits_anew_while_all_are_failed_is_not_failed_with_them() -> None:
    waits = OffsetWaits()

    class Again(Told):
        def failed(self, error: BrokerError) -> None:
            super().failed(error)
            waits.add(1, self)

    again = Again()
    waits.add(1, again)
    waits.fail(NotLeader())
    assert len(again.codes) == len(waits) == 1


def with_partition(scenario: Callable[[Rig, Partition], Awaitable[None]], *, is_flushed_unheard: bool = False) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        partition = rig.partition(log)
        partition.lead(0)
        if is_flushed_unheard:
            log.on_flushed = lambda _: None
        await rig.append(log, make_batch(3))
        await scenario(rig, partition)
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_what_is_committed_already_is_told_at_once() -> None:
    async def scenario(rig: Rig, partition: Partition) -> None:
        await partition.log.flush()
        told = Told()
        partition.when_committed(3, told, timeout_ms=1)
        assert told.codes == [ErrorCode.NONE]
        rig.clock.advance(1)
        assert told.codes == [ErrorCode.NONE]

    with_partition(scenario)


def test_a_wait_ends_with_its_leadership_once_all_know_of_that() -> None:
    async def scenario(rig: Rig, partition: Partition) -> None:
        told = Told()
        partition.when_committed(3, told, timeout_ms=1_000)
        waiting = asyncio.ensure_future(partition.committed(3))
        await asyncio.sleep(0)
        partition.resign(1)
        assert told.codes == []
        partition.fail_waits()
        rig.clock.advance(3)
        assert told.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER], "its time limit ended with it"
        with pytest.raises(NotLeader):
            await waiting

    with_partition(scenario, is_flushed_unheard=True)


def test_a_wait_of_which_the_time_is_up_may_still_see_its_offset_reached() -> None:
    async def scenario(rig: Rig, partition: Partition) -> None:
        told = Told()
        partition.when_committed(3, told, timeout_ms=500)
        rig.clock.advance(0.5)
        assert told.codes == []
        rig.clock.advance(2 * SWEEP_SECONDS)
        assert told.codes == [ErrorCode.REQUEST_TIMED_OUT]
        partition._advance(3)
        assert told.codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE], "who waits takes the first"

    with_partition(scenario, is_flushed_unheard=True)


def test_a_flush_that_can_not_be_had_is_told_to_all_who_wait_for_it() -> None:
    async def scenario(rig: Rig, partition: Partition) -> None:
        waiting = [asyncio.ensure_future(partition.log.flush()) for _ in range(2)]
        await asyncio.sleep(0)
        partition.log.fail(OSError("the disk is gone"))
        for one in waiting:
            with pytest.raises(StorageFailed, match="the disk is gone"):
                await one

    with_partition(scenario)


def test_offsets_are_waited_for_in_two_places_only() -> None:
    found = {
        module_of(path)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "OffsetWaits"
    }
    assert found == WAITING_PLACES.keys()
