"""Coordinators decide, append, replay, and answer when it is committed; after a restart they know what they knew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

import pytest

from headpond.coordination.home import Ended, KeyValue, Producer, Stored
from headpond.coordination.records import CoordinatorRecord, RecordCodec, RecordType
from headpond.coordination.runtime import SLICE_RECORDS, CoordinatorRuntime, Decision
from headpond.coordination.slices import Work, finish_now, in_one_slice
from headpond.model import BrokerError, ErrorCode, NotLeader, StorageFailed
from headpond.model.waits import Awaited, OffsetWaits, Waiter
from headpond.protocol.schema.transaction_records import TransactionLogKey, TransactionLogValue
from headpond.runtime.tasks import LoopTasks
from simulation.harness.clock import ManualClock
from simulation.harness.turns import settle

CODEC = RecordCodec({0: RecordType(TransactionLogKey, TransactionLogValue, 1)})
KEY = "some-id"

T = TypeVar("T")


def record(name: str, epoch: int | None) -> CoordinatorRecord:
    value = None if epoch is None else TransactionLogValue(producer_epoch=epoch, transaction_partitions=None)
    return CoordinatorRecord(TransactionLogKey(transactional_id=name), value)


class Home:
    """One partition in memory; committing is the test's to do."""

    def __init__(self) -> None:
        self.batches: list[Stored | Ended] = []
        self.rooms_missing = 0
        self.append_error: BrokerError | None = None
        self._waits = OffsetWaits()
        self.commits_itself = True

    def has_room(self, partition: int) -> bool:
        return self.rooms_missing == 0

    async def make_room(self, partition: int) -> None:
        await asyncio.sleep(0)
        self.rooms_missing -= 1

    def append(self, partition: int, records: Sequence[KeyValue], producer: Producer | None) -> int:
        if self.append_error is not None:
            raise self.append_error
        self.batches.append(Stored(list(records), producer))
        return len(self.batches)

    async def committed(self, partition: int, end_offset: int) -> None:
        awaited = Awaited()
        self.when_committed(partition, end_offset, awaited)
        await awaited.future

    def when_committed(self, partition: int, end_offset: int, waiter: Waiter) -> None:
        if self.commits_itself:
            waiter.reached()
        else:
            self._waits.add(end_offset, waiter)

    async def read(self, partition: int) -> AsyncIterator[Stored | Ended]:
        for batch in list(self.batches):
            await asyncio.sleep(0)
            yield batch

    def commit(self) -> None:
        self._waits.reach(len(self.batches))

    def lose(self) -> None:
        self._waits.fail(NotLeader())


class Epochs:
    """A machine that remembers one number per key."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.pending: dict[Producer, dict[str, int]] = {}
        self.is_loaded = self.is_closed = False

    def replay(self, record: CoordinatorRecord, producer: Producer | None) -> None:
        assert isinstance(record.key, TransactionLogKey)
        name = record.key.transactional_id
        if record.value is None:
            self.values.pop(name, None)
            return
        assert isinstance(record.value, TransactionLogValue)
        into = self.values if producer is None else self.pending.setdefault(producer, {})
        into[name] = record.value.producer_epoch

    def replay_end(self, ended: Ended) -> None:
        pending = self.pending.pop(ended.producer, {})
        if ended.is_commit:
            self.values.update(pending)

    def loaded(self) -> None:
        self.is_loaded = True

    def close(self) -> None:
        self.is_closed = True


class World:
    def __init__(self, home: Home, *, partition_count: int | None = 1) -> None:
        self.home = home
        self.clock = ManualClock()
        self.runtime: CoordinatorRuntime[Epochs] = CoordinatorRuntime(
            "__state",
            home=home,
            codec=CODEC,
            make_machine=lambda partition: Epochs(),
            partition_count=lambda: partition_count,
            clock=self.clock,
            tasks=LoopTasks(),
        )

    async def lead(self) -> None:
        self.runtime.lead(0, 1)
        await settle()

    async def bump(self, key: str = KEY) -> int:
        def decide(machine: Epochs) -> Decision[int]:
            epoch = machine.values.get(key, -1) + 1
            return Decision(epoch, [record(key, epoch)])

        return await self.runtime.write(key, decide)

    def epoch(self, key: str = KEY) -> int | None:
        return self.runtime.read(key, lambda machine: machine.values.get(key))


async def leading(home: Home | None = None) -> World:
    """A coordinator that has loaded what ``home`` holds; without one: nothing."""
    world = World(home or Home())
    await world.lead()
    return world


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(BrokerError) as raised:
        yield
    assert ErrorCode(raised.value.code) == code


def in_loop(test: Callable[[], object]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_an_answer_leaves_when_its_records_are_committed_and_not_before() -> None:
    async def run() -> None:
        world = await leading()
        world.home.commits_itself = False
        answer = asyncio.ensure_future(world.bump())
        await settle()
        assert not answer.done()
        world.home.commit()
        assert await answer == 0

    in_loop(run)


def test_whoever_decides_next_sees_what_was_decided_before_committed_or_not() -> None:
    async def run() -> None:
        world = await leading()
        world.home.commits_itself = False
        answers = [asyncio.ensure_future(world.bump()) for _ in range(3)]
        await settle()
        world.home.commit()
        assert await asyncio.gather(*answers) == [0, 1, 2]

    in_loop(run)


def test_a_restarted_coordinator_knows_what_the_log_says() -> None:
    async def run() -> None:
        world = await leading()
        for _ in range(5):
            await world.bump("a")
        await world.bump("b")
        world.home.batches.append(Stored([CODEC.encode(record("b", None))]))
        again = await leading(world.home)
        assert (again.epoch("a"), again.epoch("b")) == (4, None)

    in_loop(run)


def test_records_of_a_transaction_count_when_it_is_committed_live_and_after_a_restart() -> None:
    async def run() -> None:
        world = await leading()
        good, bad = Producer(1, 0), Producer(2, 0)
        for producer, key in ((good, "good"), (bad, "bad")):
            await world.runtime.write(
                key, lambda _, key=key, producer=producer: Decision(None, [record(key, 7)], producer=producer)
            )
            assert world.epoch(key) is None
        for ended in (Ended(good, is_commit=True), Ended(bad, is_commit=False)):
            world.home.batches.append(ended)
            world.runtime.ended(0, ended)
        assert (world.epoch("good"), world.epoch("bad")) == (7, None)
        again = await leading(world.home)
        assert (again.epoch("good"), again.epoch("bad")) == (7, None)

    in_loop(run)


def test_nothing_is_answered_while_loading_nor_by_a_broker_that_does_not_lead() -> None:
    async def run() -> None:
        world = World(Home())
        with refused(ErrorCode.NOT_COORDINATOR):
            await world.bump()
        world.runtime.lead(0, 1)
        with refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            world.epoch()
        assert world.runtime.is_loading
        await settle()
        assert world.epoch() is None
        world.runtime.resign(0)
        with refused(ErrorCode.NOT_COORDINATOR):
            world.epoch()

    in_loop(run)


def test_without_its_topic_there_is_no_coordinator() -> None:
    async def run() -> None:
        with refused(ErrorCode.NOT_COORDINATOR):
            await World(Home(), partition_count=None).bump()

    in_loop(run)


def test_what_could_not_be_appended_did_not_happen() -> None:
    async def run() -> None:
        world = await leading()
        world.home.append_error = StorageFailed()
        failures: list[ErrorCode] = []
        with refused(ErrorCode.NOT_COORDINATOR):
            await world.runtime.write(KEY, lambda _: Decision(0, [record(KEY, 9)], on_failed=failures.append))
        assert failures == [ErrorCode.NOT_COORDINATOR]
        assert world.epoch() is None

    in_loop(run)


UNWRITABLE = "\ufffd" * 12_000
"""36,000 bytes: no string of a record holds them."""


def test_a_record_that_can_not_be_written_did_not_happen_and_what_was_reserved_for_it_is_free() -> None:
    async def run() -> None:
        world = await leading()
        failures: list[ErrorCode] = []

        def decide(_: Epochs) -> Decision[int]:
            return Decision(0, [record(KEY, 9), record(UNWRITABLE, 9)], on_failed=failures.append)

        with refused(ErrorCode.UNKNOWN_SERVER_ERROR):
            await world.runtime.write(KEY, decide)
        heard: list[BrokerError | None] = []
        assert world.runtime.write_now(KEY, decide, lambda _, error: heard.append(error))
        assert [error and error.code for error in heard] == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert failures == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
        assert (world.home.batches, world.epoch()) == ([], None)

    in_loop(run)


def test_what_was_reserved_is_free_after_a_bug_too() -> None:
    async def run() -> None:
        world = await leading()
        failures: list[ErrorCode] = []
        world.home.append_error = ZeroDivisionError()  # type: ignore[assignment]

        def decide(_: Epochs) -> Decision[int]:
            return Decision(0, [record(KEY, 9)], on_failed=failures.append)

        with pytest.raises(ZeroDivisionError):
            await world.runtime.write(KEY, decide)
        with pytest.raises(ZeroDivisionError):
            world.runtime.write_now(KEY, decide, lambda *_: None)
        assert failures == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2

    in_loop(run)


def test_who_waits_for_a_commit_is_told_when_the_leadership_moves_first() -> None:
    async def run() -> None:
        world = await leading()
        world.home.commits_itself = False
        answer = asyncio.ensure_future(world.bump())
        await settle()
        world.home.lose()
        with refused(ErrorCode.NOT_COORDINATOR):
            await answer

    in_loop(run)


def test_a_decision_waits_for_room_and_is_taken_once() -> None:
    async def run() -> None:
        world = await leading()
        world.home.rooms_missing = 2
        decided: list[None] = []

        def decide(machine: Epochs) -> Decision[str]:
            decided.append(None)
            return Decision("done", [record(KEY, 1)])

        assert await world.runtime.write(KEY, decide) == "done"
        assert len(decided) == 1

    in_loop(run)


def test_a_record_that_makes_no_sense_keeps_its_partition_closed() -> None:
    async def run() -> None:
        home = Home()
        home.batches.append(Stored([(b"\0\0\0\x09ab", b"\0\0")]))
        world = await leading(home)
        with refused(ErrorCode.NOT_COORDINATOR):
            world.epoch()

    in_loop(run)


def test_a_record_of_a_type_from_the_future_is_left_alone() -> None:
    async def run() -> None:
        home = Home()
        home.batches.append(Stored([(b"\x7f\0whatever", b"\0\0whatever"), CODEC.encode(record(KEY, 3))]))
        world = await leading(home)
        assert world.epoch() == 3

    in_loop(run)


def test_a_machine_is_closed_when_the_leadership_goes() -> None:
    async def run() -> None:
        world = await leading()
        (machine,) = world.runtime.machines()
        assert machine.is_loaded
        world.runtime.resign(0)
        assert machine.is_closed
        assert world.runtime.machines() == []

    in_loop(run)


async def settled_value(world: World) -> int | None:
    async def finish(work: Work[T]) -> T:
        return finish_now(work)

    return await world.runtime.settled(KEY, lambda machine: in_one_slice(lambda: machine.values.get(KEY)), finish)


def test_a_read_that_wants_to_last_waits_for_what_it_saw() -> None:
    async def run() -> None:
        world = await leading()
        world.home.commits_itself = False
        written = asyncio.ensure_future(world.bump())
        await settle()
        seen = asyncio.ensure_future(settled_value(world))
        await settle()
        assert world.epoch() == 0  # who does not mind is told at once
        assert not seen.done()
        world.home.commit()
        assert await seen == await written == 0
        assert await asyncio.wait_for(settled_value(world), 5) == 0

    in_loop(run)


def test_a_write_without_a_task_is_the_same_write() -> None:
    async def run() -> None:
        world = World(Home())
        heard: list[tuple[int | None, ErrorCode | None]] = []
        called: list[str] = []

        def done(answer: int | None, failed: BrokerError | None) -> None:
            heard.append((answer, None if failed is None else ErrorCode(failed.code)))

        def decide(machine: Epochs) -> Decision[int]:
            epoch = machine.values.get(KEY, -1) + 1
            return Decision(
                epoch,
                [record(KEY, epoch)],
                on_committed=lambda: called.append("committed"),
                on_failed=lambda code: called.append(code.name),
            )

        def refuse(machine: Epochs) -> Decision[int]:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)

        assert world.runtime.write_now(KEY, decide, done)
        assert heard.pop() == (None, ErrorCode.NOT_COORDINATOR)
        await world.lead()
        assert world.runtime.write_now(KEY, refuse, done)
        assert heard.pop() == (None, ErrorCode.UNKNOWN_MEMBER_ID)
        world.home.rooms_missing = 1
        assert not world.runtime.write_now(KEY, decide, done)
        assert (heard, world.epoch()) == ([], None)
        world.home.rooms_missing = 0
        world.home.commits_itself = False
        assert world.runtime.write_now(KEY, decide, done)
        assert world.runtime.write_now(KEY, lambda machine: Decision(machine.values[KEY] + 100), done)
        await settle()
        assert (heard, called, world.epoch()) == ([], [], 0)
        world.home.commit()
        await settle()
        assert (heard, called) == ([(0, None), (100, None)], ["committed"])
        heard.clear()
        assert world.runtime.write_now(KEY, decide, done)
        world.home.lose()
        await settle()
        assert heard == [(None, ErrorCode.NOT_COORDINATOR)]
        assert called == ["committed", "NOT_COORDINATOR"]
        world.home.append_error = StorageFailed()
        assert world.runtime.write_now(KEY, decide, done)
        assert heard[1:] == [(None, ErrorCode.NOT_COORDINATOR)]

    in_loop(run)


def test_partitions_are_loaded_one_after_the_other_in_slices() -> None:
    """So that a turn of the loop holds one slice, however many partitions there are."""

    async def run() -> None:
        home = Home()
        home.batches += [
            Stored([CODEC.encode(record(f"{batch}-{number}", 1)) for number in range(100)]) for batch in range(20)
        ]
        world = World(home, partition_count=3)
        for partition in range(3):
            world.runtime.lead(partition, 1)
        loaded: list[int] = []
        for _ in range(1_000):
            await asyncio.sleep(0)
            loaded.append(len(world.runtime.machines()))
            if loaded[-1] == 3:
                break
            world.clock.advance(0)
        assert loaded[-1] == 3
        assert {0, 1, 2} <= set(loaded)

    in_loop(run)


@pytest.mark.parametrize(
    "batch", [Ended(Producer(1, 0), is_commit=True), Stored(())], ids=["markers", "batches without records"]
)
def test_what_has_no_records_is_replayed_in_slices_too(batch: Stored | Ended) -> None:
    async def run() -> None:
        home = HomeThatNeverWaits()
        home.batches += [batch] * 5_000
        world = World(home)
        world.runtime.lead(0, 1)
        given: list[int] = []
        while not world.runtime.machines():
            await asyncio.sleep(0)
            given.append(home.given)
            world.clock.advance(0)
        in_a_turn = [after - before for before, after in pairwise(given)]
        assert home.given == 5_000
        assert max(in_a_turn) <= SLICE_RECORDS

    in_loop(run)


class HomeThatNeverWaits(Home):
    """As one does whose partition was read at once: only whoever reads can let the loop turn."""

    given = 0

    async def read(self, partition: int) -> AsyncIterator[Stored | Ended]:
        for batch in self.batches:
            self.given += 1
            yield batch
