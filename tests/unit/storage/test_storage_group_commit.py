"""The group commit: who is synced when, what counts as flushed, and what a failed sync does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from headpond.model import StorageFailed, TopicId, TopicPartition
from headpond.ports import File
from headpond.storage.commit.group_commit import (
    APPENDS_BETWEEN_LOOKS,
    GATHERED_APPENDS,
    LAG_S,
    SYNC_ALL_FROM_LOGS,
    FlushMode,
)
from headpond.storage.log.log import PartitionLog
from headpond.storage.manager import StorageConfig
from simulation.harness.disk import SimulatedDisk
from simulation.harness.trace import EverythingSynced, Synced
from simulation.harness.turns import settle
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TOPIC_ID, Rig, make_batch, writable


def syncs(rig: Rig) -> int:
    return sum(isinstance(operation, Synced | EverythingSynced) for operation in rig.disk.trace)


async def prepare(rig: Rig) -> PartitionLog:
    """A log with its files made, nothing dirty."""
    log = await rig.open()
    await log.make_room(100, NOW_MS, NOW_MS)
    return log


def test_nothing_counts_as_flushed_before_its_sync_has_returned() -> None:
    async def run() -> None:
        rig = Rig()
        log = await prepare(rig)
        seen: list[int] = []
        log.on_flushed = seen.append
        await rig.append(log, make_batch(3))
        assert (log.log_end_offset, log.flushed_end_offset) == (3, 0)
        rig.manager.commits.hurry(log)
        await asyncio.sleep(0)  # the end of this turn of the loop: the sync begins
        data, header = writable(make_batch(2))
        log.append(data, header, leader_epoch=0, now_ms=NOW_MS)  # while the first sync runs
        assert log.flushed_end_offset == 0
        await settle()
        assert seen == [3]
        await log.flush()
        assert seen == [3, 5]

    asyncio.run(run())


def test_whatever_came_in_with_one_turn_of_the_loop_shares_one_sync() -> None:
    async def run() -> None:
        known = {TopicPartition("many", number): TopicId(TOPIC_ID) for number in range(SYNC_ALL_FROM_LOGS)}
        rig = Rig(known=known)
        await rig.open()
        logs = [log for tp in known if (log := rig.manager.get(tp)) is not None]
        for log in logs:
            await log.make_room(100, NOW_MS, NOW_MS)
        before = syncs(rig)
        for log in logs:
            data, header = writable(make_batch(2))
            log.append(data, header, leader_epoch=0, now_ms=NOW_MS)
            rig.manager.commits.mark_dirty(log, urgent=True)
        await settle()
        assert [log.flushed_end_offset for log in logs] == [2] * SYNC_ALL_FROM_LOGS
        assert syncs(rig) - before == 1

    asyncio.run(run())


class HeldSyncs:
    """``ports.Syncer``: takes whatever it is offered once it ``is_taking``, and is done when the test says so."""

    def __init__(self) -> None:
        self.is_taking = False
        self.offered: list[int] = []  # how many files each
        self.returned: list[BaseException | None] = []  # those offered first; nobody has looked yet
        self._done: list[Callable[[float | None, BaseException | None], None]] = []

    def offer(
        self, files: Sequence[File], folder: str | None, done: Callable[[float | None, BaseException | None], None]
    ) -> bool:
        if self.is_taking:
            self.offered.append(len(files))
            self._done.append(done)
        return self.is_taking

    def look(self) -> None:
        while self.returned:
            self.finish(self.returned.pop(0))

    def finish(self, error: BaseException | None = None) -> None:
        """The one that was offered first."""
        self._done.pop(0)(None if error else 0.001, error)


async def open_many(count: int) -> tuple[Rig, HeldSyncs, list[PartitionLog]]:
    """As many logs with their files made, nothing dirty, and syncs that are held from now on."""
    syncer = HeldSyncs()
    rig = Rig(known={TopicPartition("many", number): TopicId(TOPIC_ID) for number in range(count)}, syncer=syncer)
    await rig.open()
    logs = rig.manager.all()
    for log in logs:
        await log.make_room(100, NOW_MS, NOW_MS)
    syncer.is_taking = True
    return rig, syncer, logs


def append_urgently(rig: Rig, logs: Sequence[PartitionLog]) -> None:
    for log in logs:
        data, header = writable(make_batch())
        log.append(data, header, leader_epoch=0, now_ms=NOW_MS)
        rig.manager.commits.mark_dirty(log, urgent=True)


def test_in_a_long_turn_the_sync_of_what_has_gathered_begins_before_its_end() -> None:
    async def run() -> None:
        rig, syncer, logs = await open_many(GATHERED_APPENDS + 10)
        append_urgently(rig, logs)
        assert syncer.offered == [GATHERED_APPENDS], "in the middle of the turn"
        await settle()
        assert syncer.offered == [GATHERED_APPENDS], "one sync of everything at a time"
        syncer.finish()
        assert [log.flushed_end_offset for log in logs] == [1] * GATHERED_APPENDS + [0] * 10
        assert syncer.offered == [GATHERED_APPENDS, 10], "the rest follows at once"
        syncer.finish()
        assert [log.flushed_end_offset for log in logs] == [1] * len(logs)

    asyncio.run(run())


def test_a_sync_that_returns_in_a_long_turn_is_followed_by_the_next_one_and_told_of_when_the_turn_is_over() -> None:
    async def run() -> None:
        rig, syncer, logs = await open_many(2 * GATHERED_APPENDS + APPENDS_BETWEEN_LOOKS)
        append_urgently(rig, logs[:GATHERED_APPENDS])
        append_urgently(rig, logs[GATHERED_APPENDS:-APPENDS_BETWEEN_LOOKS])
        assert syncer.offered == [GATHERED_APPENDS], "the first has not returned"
        syncer.returned = [None]
        append_urgently(rig, logs[-APPENDS_BETWEEN_LOOKS:])
        assert syncer.offered == [GATHERED_APPENDS, GATHERED_APPENDS + APPENDS_BETWEEN_LOOKS]
        assert not any(log.flushed_end_offset for log in logs), "an append is under way: nobody is told in it"
        await settle()
        assert [log.flushed_end_offset for log in logs] == [1] * GATHERED_APPENDS + [0] * len(logs[GATHERED_APPENDS:])
        syncer.finish()
        assert [log.flushed_end_offset for log in logs] == [1] * len(logs)

    asyncio.run(run())


def test_many_appends_to_one_log_have_the_next_sync_before_those_of_the_first_are_told() -> None:
    async def run() -> None:
        rig, syncer, (log,) = await open_many(1)
        seen: list[int] = []
        log.on_flushed = seen.append
        append_urgently(rig, [log] * GATHERED_APPENDS)
        syncer.returned = [None]
        append_urgently(rig, [log] * GATHERED_APPENDS)
        assert syncer.offered == [1, 1]
        waiting = asyncio.ensure_future(log.flush())
        await settle()
        assert seen == [GATHERED_APPENDS]
        syncer.finish()
        await waiting
        assert seen == [GATHERED_APPENDS, 2 * GATHERED_APPENDS]

    asyncio.run(run())


def test_the_ends_of_one_log_are_told_in_order_though_its_second_sync_is_heard_of_first() -> None:
    async def run() -> None:
        rig, syncer, (log,) = await open_many(1)
        seen: list[int] = []
        log.on_flushed = seen.append
        append_urgently(rig, [log] * GATHERED_APPENDS)
        syncer.returned = [None]
        append_urgently(rig, [log] * GATHERED_APPENDS)  # heard of in this turn, to be told after it
        syncer.finish()
        assert seen == [GATHERED_APPENDS, 2 * GATHERED_APPENDS]
        await settle()
        assert rig.manager.meters.commit_records.sum == 2 * GATHERED_APPENDS

    asyncio.run(run())


def test_a_sync_that_fails_in_a_long_turn_is_the_last_one() -> None:
    async def run() -> None:
        rig, syncer, logs = await open_many(2 * GATHERED_APPENDS)
        append_urgently(rig, logs[:GATHERED_APPENDS])
        waiting = asyncio.ensure_future(logs[0].flush())
        await asyncio.sleep(0)
        syncer.returned = [OSError(5, "the disk is gone")]
        append_urgently(rig, logs[GATHERED_APPENDS:])
        with pytest.raises(StorageFailed):
            await waiting
        await rig.manager.commits.idle()
        assert syncer.offered == [GATHERED_APPENDS]
        assert len(rig.fatal) == 1
        assert not any(log.flushed_end_offset for log in logs)

    asyncio.run(run())


def test_a_log_that_is_appended_to_while_it_is_synced_waits_for_the_next_sync() -> None:
    async def run() -> None:
        rig, syncer, logs = await open_many(GATHERED_APPENDS)
        append_urgently(rig, logs)
        append_urgently(rig, logs[:3])
        syncer.finish()
        assert [log.flushed_end_offset for log in logs] == [1] * GATHERED_APPENDS
        await settle()
        assert syncer.offered == [GATHERED_APPENDS, 1, 1, 1]
        for _ in range(3):
            syncer.finish()
        assert [log.flushed_end_offset for log in logs] == [2] * 3 + [1] * (GATHERED_APPENDS - 3)

    asyncio.run(run())


def test_syncs_of_single_logs_do_not_hold_up_one_of_everything() -> None:
    async def run() -> None:
        rig, syncer, logs = await open_many(GATHERED_APPENDS + 2)
        append_urgently(rig, logs[:2])
        await settle()
        assert syncer.offered == [1, 1]
        append_urgently(rig, logs[2:])
        await settle()
        assert syncer.offered == [1, 1, GATHERED_APPENDS]

    asyncio.run(run())


def test_a_few_logs_wait_for_the_sync_of_everything_that_is_under_way() -> None:
    async def run() -> None:
        rig, syncer, logs = await open_many(SYNC_ALL_FROM_LOGS + 2)
        append_urgently(rig, logs[2:])
        await settle()
        append_urgently(rig, logs[:2])
        await settle()
        assert syncer.offered == [SYNC_ALL_FROM_LOGS]
        syncer.finish()
        assert syncer.offered == [SYNC_ALL_FROM_LOGS, 1, 1]

    asyncio.run(run())


def test_when_a_sync_fails_whoever_waits_for_another_one_is_told_too() -> None:
    async def run() -> None:
        rig, syncer, logs = await open_many(GATHERED_APPENDS + 2)
        append_urgently(rig, logs[:2])
        await settle()
        append_urgently(rig, logs[2:])
        waiting = [asyncio.ensure_future(log.flush()) for log in logs]
        await settle()
        syncer.finish(OSError(5, "the disk is gone"))
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(outcome, StorageFailed) for outcome in outcomes)
        assert len(rig.fatal) == 1

    asyncio.run(run())


def test_without_hurry_a_dirty_log_is_synced_after_a_short_lag_and_once_for_all() -> None:
    async def run() -> None:
        rig = Rig()
        log = await prepare(rig)
        before = syncs(rig)
        for _ in range(5):
            await rig.append(log, make_batch())
        await settle()
        assert (syncs(rig), log.flushed_end_offset) == (before, 0)
        rig.clock.advance(LAG_S)
        await settle()
        assert (syncs(rig), log.flushed_end_offset) == (before + 1, 5)

    asyncio.run(run())


def test_an_urgent_append_pulls_the_sync_forward() -> None:
    async def run() -> None:
        rig = Rig()
        log = await prepare(rig)
        await rig.append(log, make_batch())
        await rig.append(log, make_batch())
        rig.manager.commits.mark_dirty(log, urgent=True)
        await settle()
        assert log.flushed_end_offset == 2

    asyncio.run(run())


def test_in_mode_os_nothing_is_synced_unless_the_topics_settings_say_so() -> None:
    async def run() -> None:
        rig = Rig(storage=StorageConfig(flush="os"))
        log = await prepare(rig)
        await rig.append(log, make_batch())
        rig.clock.advance(0.5)
        await settle()
        assert log.flushed_end_offset == 0
        rig.reconfigure(flush_messages=3)
        await rig.append(log, make_batch())
        await settle()
        assert log.flushed_end_offset == 0
        await rig.append(log, make_batch())
        await settle()
        assert log.flushed_end_offset == 3
        rig.reconfigure(flush_messages=1_000, flush_ms=200)
        await rig.append(log, make_batch())
        rig.clock.advance(0.199)
        await settle()
        assert log.flushed_end_offset == 3
        rig.clock.advance(0.001)
        await settle()
        assert log.flushed_end_offset == 4

    asyncio.run(run())


@pytest.mark.parametrize("flush", ["interval", "os"])
def test_modes_in_which_nobody_waits_for_a_sync_have_none_for_acks_all(flush: FlushMode) -> None:
    async def run() -> None:
        rig = Rig(storage=StorageConfig(flush=flush))
        log = await prepare(rig)
        partition = rig.partition(log, follows_flush=False)
        partition.lead(0)
        before = syncs(rig)
        for _ in range(2 * GATHERED_APPENDS):
            data, header = writable(make_batch())
            partition.append(data, header, NOW_MS, is_urgent=True)
        await settle()
        assert (syncs(rig), partition.high_watermark) == (before, 2 * GATHERED_APPENDS)
        rig.reconfigure(flush_messages=1)
        data, header = writable(make_batch())
        partition.append(data, header, NOW_MS, is_urgent=True)
        await settle()
        assert (syncs(rig), partition.high_watermark) == (before + 1, 2 * GATHERED_APPENDS + 1)

    asyncio.run(run())


def test_in_mode_interval_dirty_logs_are_synced_after_the_interval() -> None:
    async def run() -> None:
        rig = Rig(storage=StorageConfig(flush="interval", flush_interval_ms=300))
        log = await prepare(rig)
        await rig.append(log, make_batch())
        rig.clock.advance(0.299)
        await settle()
        assert log.flushed_end_offset == 0
        rig.clock.advance(0.001)
        await settle()
        assert log.flushed_end_offset == 1

    asyncio.run(run())


@pytest.mark.parametrize("has_sync_all", [True, False])
def test_many_dirty_logs_are_served_by_one_sync_of_the_file_system(has_sync_all: bool) -> None:
    async def run() -> None:
        known = {TopicPartition("many", number): TopicId(TOPIC_ID) for number in range(SYNC_ALL_FROM_LOGS)}
        rig = Rig(known=known)
        rig.disk.faults.has_sync_all = has_sync_all
        await rig.open()
        logs = rig.manager.all()
        for log in logs:
            await log.make_room(100, NOW_MS, NOW_MS)
        start = len(rig.disk.trace)
        for log in logs:
            await rig.append(log, make_batch())
        rig.clock.advance(LAG_S)
        await settle()
        assert all(log.flushed_end_offset == 1 for log in logs)
        done = [operation for operation in rig.disk.trace[start:] if isinstance(operation, Synced | EverythingSynced)]
        assert len(done) == (1 if has_sync_all else len(logs))

    asyncio.run(run())


def test_a_log_in_another_file_system_is_synced_by_its_own_file() -> None:
    async def run() -> None:
        known = {TopicPartition("many", number): TopicId(TOPIC_ID) for number in range(SYNC_ALL_FROM_LOGS + 1)}
        rig = Rig(known=known)
        rig.disk.mount(f"{DATA_DIR}/many-3")
        await rig.open()
        logs = rig.manager.all()
        for log in logs:
            await log.make_room(100, NOW_MS, NOW_MS)
        assert [log.tp.partition for log in logs if log.is_elsewhere] == [3]
        start = len(rig.disk.trace)
        for log in logs:
            await rig.append(log, make_batch())
        rig.clock.advance(LAG_S)
        await settle()
        assert all(log.flushed_end_offset == 1 for log in logs)
        done = [operation for operation in rig.disk.trace[start:] if isinstance(operation, Synced | EverythingSynced)]
        assert sorted(type(each).__name__ for each in done) == ["EverythingSynced", "Synced"]
        again = Rig(SimulatedDisk(rig.disk.durable_image()), known=known)
        await again.open()
        assert [log.log_end_offset for log in again.manager.all()] == [1] * len(known)

    asyncio.run(run())


def test_a_failed_sync_is_not_repeated_and_the_folder_takes_no_more_writes() -> None:
    async def run() -> None:
        rig = Rig()
        log = await prepare(rig)
        await rig.append(log, make_batch(2), flush=True)
        await rig.append(log, make_batch(2))
        rig.disk.faults.fail_next_syncs()
        with pytest.raises(StorageFailed):
            await log.flush()
        assert len(rig.fatal) == 1
        assert log.flushed_end_offset == 2
        before = syncs(rig)
        with pytest.raises(StorageFailed):
            await log.flush()
        data, header = writable(make_batch())
        assert not log.can_append(len(data), NOW_MS, NOW_MS)
        with pytest.raises(StorageFailed):
            await log.make_room(len(data), NOW_MS, NOW_MS)
        with pytest.raises(StorageFailed):
            log.append(data, header, leader_epoch=0, now_ms=NOW_MS)
        rig.clock.advance(10)
        await settle()
        assert syncs(rig) == before
        await rig.close()
        assert ".kafka_cleanshutdown" not in await rig.files()

    asyncio.run(run())


def test_a_failed_sync_of_a_new_segment_is_fatal_too() -> None:
    async def run() -> None:
        rig = Rig()
        log = await prepare(rig)
        await rig.append(log, make_batch(), flush=True)
        rig.disk.faults.fail_next_syncs()
        with pytest.raises(StorageFailed):
            await log.roll()
        assert len(rig.fatal) == 1

    asyncio.run(run())


def test_a_callback_that_fails_does_not_stop_the_commit_of_others() -> None:
    async def run() -> None:
        rig = Rig(known={TopicPartition("t", number): TOPIC_ID for number in range(10)})
        await rig.open()
        logs = rig.manager.all()

        def fail(_: int) -> None:
            raise RuntimeError("a waiter's bug")

        logs[0].on_flushed = fail
        for _ in range(2):
            for log in logs:
                await rig.append(log, make_batch())
            rig.clock.advance(LAG_S)
            await settle()
        assert [log.flushed_end_offset for log in logs] == [2] * 10

    asyncio.run(run())


def test_a_topics_flush_messages_bring_a_sync_forward_that_waits_for_its_time() -> None:
    async def run() -> None:
        rig = Rig(storage=StorageConfig(flush="interval", flush_interval_ms=300))
        log = await prepare(rig)
        rig.reconfigure(flush_messages=3)
        for number in range(6):
            await rig.append(log, make_batch())
            await settle()
            assert log.flushed_end_offset == (number + 1) // 3 * 3

    asyncio.run(run())
