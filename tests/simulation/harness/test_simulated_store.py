"""The simulated store's faults, and the simulated clock and workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headpond.model import OutcomeUnknown, StorageFailed
from headpond.ports import Change, Changes, Committed, HistoryLost, Put
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import SimulatedMetadataStore, StoreServer
from simulation.harness.workers import SimulatedWorkers, inside_worker


def run(main: Callable[[ManualClock, StoreServer, SimulatedMetadataStore], Awaitable[None]]) -> None:
    async def go() -> None:
        clock = ManualClock()
        server = StoreServer(clock)
        async with asyncio.timeout(10):
            await main(clock, server, SimulatedMetadataStore(server, clock))

    asyncio.run(go())


def test_a_lost_answer_is_unknown_whether_the_change_was_made_or_not() -> None:
    async def main(clock: ManualClock, server: StoreServer, store: SimulatedMetadataStore) -> None:
        store.lose_next_answer("done")
        with pytest.raises(OutcomeUnknown):
            await store.transact([], [Put("a", b"1")])
        store.lose_next_answer("not done")
        with pytest.raises(OutcomeUnknown):
            await store.transact([], [Put("b", b"1")])
        assert [entry.key for entry in (await store.list("")).entries] == ["a"]
        assert await store.transact([], [Put("c", b"1")]) == Committed(2)

    run(main)


def test_out_of_reach_writes_are_unknown_and_reads_fail_and_watches_go_on_afterwards() -> None:
    async def main(clock: ManualClock, server: StoreServer, store: SimulatedMetadataStore) -> None:
        other = SimulatedMetadataStore(server, clock)
        watching = asyncio.ensure_future(anext(store.watch("", after_revision=0)))
        store.is_reachable = False
        with pytest.raises(OutcomeUnknown):
            await store.transact([], [Put("a", b"")])
        with pytest.raises(StorageFailed):
            await store.get("a")
        await other.transact([], [Put("b", b"")])
        for _ in range(5):
            await asyncio.sleep(0)
        assert not watching.done()
        store.is_reachable = True
        assert await watching == Changes(1, (Change("b", b"", 1),))

    run(main)


def test_a_stalled_watch_catches_up_or_finds_its_history_gone() -> None:
    async def main(clock: ManualClock, server: StoreServer, store: SimulatedMetadataStore) -> None:
        store.stall_watches(True)
        patient, late = store.watch("", after_revision=0), store.watch("", after_revision=0)
        waiting = [asyncio.ensure_future(anext(each)) for each in (patient, late)]
        await store.transact([], [Put("a", b"")])
        await store.transact([], [Put("b", b"")])
        assert not any(each.done() for each in waiting)
        store.stall_watches(False)
        assert [(await each).revision for each in waiting] == [1, 1]
        store.stall_watches(True)
        again = asyncio.ensure_future(anext(late))
        await store.transact([], [Put("c", b"")])
        server.compact(3)
        store.stall_watches(False)
        with pytest.raises(HistoryLost):
            await again
        assert (await store.list("")).revision == 3

    run(main)


def test_calls_take_the_time_that_they_are_told_to_take() -> None:
    async def main(clock: ManualClock, server: StoreServer, _: SimulatedMetadataStore) -> None:
        slow = SimulatedMetadataStore(server, clock, latency_s=lambda: 0.25)
        call = asyncio.ensure_future(slow.transact([], [Put("a", b"")]))
        await clock.run_until(call)
        assert clock.monotonic() == 0.5
        assert call.result() == Committed(1)

    run(main)


def test_the_manual_clock_calls_timers_in_order_at_their_instants() -> None:
    clock = ManualClock(now_ms=1_000)
    calls: list[tuple[str, float]] = []
    clock.call_later(2, lambda: calls.append(("two", clock.monotonic())))
    clock.call_later(1, lambda: calls.append(("one", clock.monotonic())))

    def nest() -> None:
        clock.call_later(0.5, lambda: calls.append(("nested", clock.monotonic())))

    clock.call_later(1, nest)
    clock.call_later(1, lambda: pytest.fail("cancelled")).cancel()
    clock.advance(1.75)
    assert calls == [("one", 1.0), ("nested", 1.5)]
    clock.advance(0.25)
    assert calls[-1] == ("two", 2.0)
    assert clock.now_ms() == 3_000
    assert clock.next_timer_s() is None


def test_waiting_for_what_can_never_happen_is_an_error() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="forever"):
            await ManualClock().run_until(asyncio.get_running_loop().create_future())

    asyncio.run(main())


def test_simulated_workers_answer_later_never_at_once() -> None:
    async def main() -> None:
        clock = ManualClock()
        workers = SimulatedWorkers(clock)
        answers: list[object] = []
        workers.submit(inside_worker, lambda result, error: answers.append(result))
        assert answers == []
        await asyncio.sleep(0)
        assert answers == [True]
        assert not inside_worker()
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 // 0)
        slow = SimulatedWorkers(clock, delay_s=lambda: 3.0)
        job = asyncio.ensure_future(slow.run(int))
        await clock.run_until(job)
        assert clock.monotonic() == 3.0

    asyncio.run(main())
