"""The journal: when it is used, what it gives back after a power cut, and what must not rely on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.model import StorageFailed, TopicId, TopicPartition
from headpond.storage.commit import journal
from headpond.storage.commit.group_commit import LAG_S
from headpond.storage.commit.journal import FILE_BYTES_MAX, NOTED_BATCH_BYTES_MAX
from headpond.storage.folder.names import JOURNALS, parse_folder_name
from headpond.storage.log.log import PartitionLog
from headpond.storage.manager import StorageConfig
from simulation.harness.disk import SimulatedDisk
from simulation.harness.trace import Created, EverythingSynced, Op, Synced
from simulation.harness.turns import settle
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TOPIC_ID, Rig, make_batch, read_all, writable

MANY = 10
KNOWN = {TopicPartition("many", number): TOPIC_ID for number in range(MANY)}


def append_to(
    rig: Rig, logs: list[PartitionLog], *, count: int = 1, value_bytes: int = 20, urgent: bool = True
) -> None:
    """One batch each, and somebody waits for it."""
    for log in logs:
        data, header = writable(make_batch(count, mark=log.log_end_offset, value_bytes=value_bytes))
        log.append(data, header, leader_epoch=0, now_ms=NOW_MS)
        rig.manager.commits.mark_dirty(log, urgent=urgent)


async def commit(
    rig: Rig, logs: list[PartitionLog], *, count: int = 1, value_bytes: int = 20
) -> list[Synced | EverythingSynced]:
    """The syncs that it took."""
    before = len(rig.disk.trace)
    append_to(rig, logs, count=count, value_bytes=value_bytes)
    await settle()
    assert all(log.flushed_end_offset == log.log_end_offset for log in logs)
    return [each for each in rig.disk.trace[before:] if isinstance(each, Synced | EverythingSynced)]


async def open_many(
    *, config: StorageConfig | None = None, mounted: TopicPartition | None = None
) -> tuple[Rig, list[PartitionLog]]:
    rig = Rig(known=KNOWN, storage=config)
    if mounted is not None:
        rig.disk.mount(f"{DATA_DIR}/{mounted}")
    await rig.open()
    logs = rig.manager.all()
    for log in logs:
        await log.make_room(100, NOW_MS, NOW_MS)
    return rig, logs


async def in_use(*, mounted: TopicPartition | None = None) -> tuple[Rig, list[PartitionLog]]:
    """A broker with many dirty logs, whose commits go through the journal."""
    rig, logs = await open_many(mounted=mounted)
    while not rig.manager.journal.is_on:
        await commit(rig, logs)
    return rig, logs


async def after_power_cut(rig: Rig, known: dict[TopicPartition, TopicId] | None = None) -> Rig:
    """Only what was synced is left."""
    again = Rig(SimulatedDisk(rig.disk.durable_image()), known=known or KNOWN)
    await again.open()
    return again


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_commits_of_many_logs_take_one_sync_of_one_file_once_syncs_of_everything_are_known_to_work() -> None:
    async def test() -> None:
        rig, logs = await open_many()
        assert isinstance((await commit(rig, logs))[0], EverythingSynced)
        while not rig.manager.journal.is_on:
            await commit(rig, logs)
        synced = await commit(rig, logs)
        assert [type(each) for each in synced] == [Synced]
        assert rig.disk.contents(f"{DATA_DIR}/{JOURNALS[0]}")

    run(test)


@pytest.mark.parametrize("empties", ["a round", "a truncation"])
def test_the_journal_is_emptied_when_logs_in_other_file_systems_are_durable_too(empties: str) -> None:
    async def test() -> None:
        rig, logs = await in_use(mounted=next(iter(KNOWN)))
        for _ in range(3):
            await commit(rig, logs)
        ends = {log.tp: log.log_end_offset for log in logs}
        assert logs[0].is_elsewhere and not logs[1].is_elsewhere
        if empties == "a round":
            await rig.checkpoint()
            await rig.checkpoint()  # the other file
        else:
            await logs[1].truncate_to(ends[logs[1].tp] - 1)
            ends[logs[1].tp] -= 1
        assert not any(rig.disk.contents(f"{DATA_DIR}/{name}") for name in JOURNALS)
        again = await after_power_cut(rig)
        assert {log.tp: log.log_end_offset for log in again.manager.all()} == ends
        assert again.manager.scanned_bytes or empties == "a round"

    run(test)


def test_the_notes_of_a_round_are_durable_before_recovery_points_rely_on_them_in_every_file_system() -> None:
    async def test() -> None:
        rig, logs = await open_many(mounted=next(iter(KNOWN)))
        for _ in range(5):
            await commit(rig, logs)
        await rig.checkpoint()
        survives = SimulatedDisk(rig.disk.durable_image())
        for log in logs:
            index = f"{DATA_DIR}/{log.tp}/{0:020d}.index"
            assert len(survives.contents(index)) == len(rig.disk.contents(index)) > 0

    run(test)


@pytest.mark.parametrize("flush", ["interval", "os"])
def test_other_modes_have_none(flush: str) -> None:
    async def test() -> None:
        rig, logs = await open_many(config=StorageConfig(flush=flush, recovery_threads=1))  # type: ignore[arg-type]
        for _ in range(5):
            append_to(rig, logs)
            await asyncio.gather(*(log.flush() for log in logs))
        assert not rig.manager.journal.is_on
        assert not set(JOURNALS) & set(await rig.files())

    run(test)


def test_what_was_durable_by_the_journal_only_is_there_after_a_power_cut_and_the_journal_gone() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        for _ in range(3):
            await commit(rig, logs)
        again = await after_power_cut(rig)
        for old, new in zip(logs, again.manager.all(), strict=True):
            assert [batch.data for batch in await read_all(new)] == [batch.data for batch in await read_all(old)]
            assert new.flushed_end_offset == new.log_end_offset == old.log_end_offset
        assert not set(JOURNALS) & set(await again.files())
        third = await after_power_cut(again)
        assert [log.log_end_offset for log in third.manager.all()] == [log.log_end_offset for log in logs]

    run(test)


def test_a_round_makes_the_logs_own_files_durable_and_empties_the_journal() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        await rig.checkpoint()
        await rig.checkpoint()
        assert [rig.disk.contents(f"{DATA_DIR}/{name}") for name in JOURNALS] == [b"", b""]
        assert not any(log.journaled for log in logs)
        again = await after_power_cut(rig)
        assert [log.log_end_offset for log in again.manager.all()] == [log.log_end_offset for log in logs]
        assert rig.manager.journal.is_on, "commits were of many logs"

    run(test)


def test_commits_go_on_while_a_round_empties_the_file_of_those_before() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        emptying = asyncio.ensure_future(rig.checkpoint())
        for _ in range(30):
            await commit(rig, logs)
        await emptying
        again = await after_power_cut(rig)
        assert [log.log_end_offset for log in again.manager.all()] == [log.log_end_offset for log in logs]

    run(test)


def test_it_is_turned_off_when_commits_are_of_few_logs_again() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        await rig.checkpoint()
        await commit(rig, logs[:2])
        assert rig.manager.journal.is_on
        await rig.checkpoint()
        assert not rig.manager.journal.is_on
        await commit(rig, logs[:2])
        again = await after_power_cut(rig)
        assert [log.log_end_offset for log in again.manager.all()] == [log.log_end_offset for log in logs]

    run(test)


def test_a_batch_that_is_too_large_to_be_noted_has_everything_synced_by_the_logs_own_files() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        rig.reconfigure(segment_bytes=10 * NOTED_BATCH_BYTES_MAX)
        append_to(rig, logs[1:])
        synced = await commit(rig, logs[:1], value_bytes=NOTED_BATCH_BYTES_MAX)
        assert any(isinstance(each, EverythingSynced) for each in synced)
        assert not rig.manager.journal.is_on
        again = await after_power_cut(rig)
        assert [log.log_end_offset for log in again.manager.all()] == [log.log_end_offset for log in logs]

    run(test)


def test_a_sync_of_the_newest_segment_takes_along_those_that_only_the_journal_has() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        log = logs[0]
        await log.roll()
        rig.manager.journal.turn_off()
        await commit(rig, [log])
        old, new = log.segments
        assert not log.journaled
        image = rig.disk.durable_image()
        durable = SimulatedDisk(image)
        for segment in (old, new):
            assert len(durable.contents(f"{log.path}/{segment.base_offset:020}.log")) == segment.size_bytes

    run(test)


def test_a_sync_takes_along_what_was_appended_while_the_round_before_it_ran() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        log = logs[0]
        await commit(rig, logs)
        emptying = asyncio.ensure_future(rig.checkpoint())
        while not rig.disk.contents(f"{DATA_DIR}/{JOURNALS[1]}"):  # the round has begun, and this is after it did
            assert not emptying.done()
            append_to(rig, logs)
            await asyncio.sleep(0)
        await emptying
        await settle()
        await log.roll()
        rig.manager.journal.turn_off()
        await commit(rig, [log])
        again = (await after_power_cut(rig)).manager.get(log.tp)
        assert again is not None and again.log_end_offset == log.log_end_offset

    run(test)


def test_what_was_noted_when_it_was_turned_off_is_not_taken_for_noted_when_it_is_on_again() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        append_to(rig, logs[:1], urgent=False)
        rig.manager.journal.turn_off()
        rig.manager.journal.allow()
        rig.manager.journal.turn_on()
        await commit(rig, logs)
        again = await after_power_cut(rig)
        assert [log.log_end_offset for log in again.manager.all()] == [log.log_end_offset for log in logs]

    run(test)


def test_deleted_records_stay_deleted_and_the_others_of_their_batch_stay() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        for _ in range(4):
            await commit(rig, logs, count=3)
        log = logs[0]
        await log.advance_log_start(log.log_end_offset - 1)
        again = (await after_power_cut(rig)).manager.get(log.tp)
        assert again is not None
        assert (again.log_start_offset, again.log_end_offset) == (log.log_start_offset, log.log_end_offset)
        assert len(await read_all(again)) == 1

    run(test)


def test_a_deleted_topics_records_do_not_come_back_under_its_name() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        tp, new_id = TopicPartition("new", MANY), TopicId(bytes(16 * [7]))
        log = rig.manager.create(tp, TOPIC_ID, rig.config)
        await log.make_room(100, NOW_MS, NOW_MS)
        await commit(rig, [*logs, log])  # its first record is durable by the journal only
        await rig.manager.delete(tp)
        again = await after_power_cut(rig, {**KNOWN, tp: new_id})
        new = again.manager.get(tp)
        assert new is not None and new.log_end_offset == 0

    run(test)


def test_records_are_deleted_while_the_logs_own_files_are_being_synced() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        for _ in range(2):
            await commit(rig, logs, count=3)
        log = logs[0]
        end_offset = log.log_end_offset
        append_to(rig, [log], urgent=False)
        assert log.begin_flush() is not None, "begun, and not done"
        await log.advance_log_start(end_offset - 1)
        again = (await after_power_cut(rig)).manager.get(log.tp)
        assert again is not None and again.log_start_offset == end_offset - 1
        assert again.log_end_offset >= end_offset

    run(test)


def test_a_failed_sync_before_records_are_deleted_is_as_final_as_any() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        rig.disk.faults.fail_syncs(logs[0].path)
        with pytest.raises(StorageFailed):
            await logs[0].advance_log_start(1)
        assert len(rig.fatal) == 1

    run(test)


def test_a_log_that_is_cut_takes_along_what_is_noted_and_not_written() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        log = logs[0]
        await commit(rig, logs)
        end_offset = log.log_end_offset
        append_to(rig, [log], urgent=False)
        rig.clock.advance(LAG_S)  # it is synced by its own file, and noted
        await settle()
        await log.truncate_to(end_offset)
        await commit(rig, logs[1:])
        again = (await after_power_cut(rig)).manager.get(log.tp)
        assert again is not None and again.log_end_offset == end_offset

    run(test)


def test_a_start_takes_everything_in_though_recovery_had_more_to_read_than_it_should(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        monkeypatch.setattr("headpond.storage.log.log.SCAN_BYTES_MAX", 10)
        again = await asyncio.wait_for(after_power_cut(rig), 10)
        assert [log.log_end_offset for log in again.manager.all()] == [log.log_end_offset for log in logs]
        assert all(log.scan_room_bytes < 10 for log in again.manager.all()), "from now on appends wait for a round"

    run(test)


def test_entries_of_an_older_epoch_than_the_logs_are_not_believed() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        image = rig.disk.durable_image()
        durable = SimulatedDisk(image)
        await rig.in_worker(durable.write_file_atomically, f"{logs[0].path}/leader-epoch-checkpoint", b"0\n1\n5 0\n")
        again = Rig(durable, known=KNOWN)
        await again.open()
        assert again.manager.all()[0].log_end_offset < logs[0].log_end_offset
        assert again.manager.all()[1].log_end_offset == logs[1].log_end_offset

    run(test)


def test_what_is_nobodys_now_is_set_aside() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        again = await after_power_cut(rig, {tp: KNOWN[tp] for tp in list(KNOWN)[1:]})
        assert f"{JOURNALS[0]}.aside" in await again.files()
        assert not set(JOURNALS) & set(await again.files())

    run(test)


def test_its_files_are_no_topics_folders() -> None:
    assert [parse_folder_name(name) for name in JOURNALS] == [None, None]


def test_without_its_files_commits_go_on_as_before() -> None:
    async def test() -> None:
        rig, logs = await open_many()
        rig.disk.before_operation = refuse_journals
        for _ in range(5):
            await commit(rig, logs)
        assert not rig.manager.journal.is_on
        assert rig.fatal == []

    def refuse_journals(operation: Op) -> None:
        if isinstance(operation, Created) and operation.name in JOURNALS:
            raise OSError(28, "no space")

    run(test)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_journal_that_takes_no_more_is_no_failure(is_full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        rig, logs = await in_use()
        if is_full:
            monkeypatch.setattr(journal, "FILE_BYTES_MAX", 100)
        else:
            rig.disk.faults.fail_next_write(f"{DATA_DIR}/{JOURNALS[0]}", after_bytes=30)
        synced = await commit(rig, logs)
        assert any(isinstance(each, EverythingSynced) for each in synced)
        assert not rig.manager.journal.is_on
        monkeypatch.setattr(journal, "FILE_BYTES_MAX", FILE_BYTES_MAX)
        await rig.checkpoint()
        await commit(rig, logs)
        assert rig.manager.journal.is_on, "after the next round, and the next sync of everything"
        await commit(rig, logs)
        again = await after_power_cut(rig)
        assert [log.log_end_offset for log in again.manager.all()] == [log.log_end_offset for log in logs]

    run(test)


def test_a_failed_sync_of_it_is_as_final_as_any() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        rig.disk.faults.fail_syncs(f"{DATA_DIR}/{JOURNALS[0]}")
        append_to(rig, logs)
        await settle()
        assert len(rig.fatal) == 1
        assert not any(log.flushed_end_offset == log.log_end_offset for log in logs)

    run(test)


def test_a_clean_stop_leaves_none() -> None:
    async def test() -> None:
        rig, logs = await in_use()
        await commit(rig, logs)
        await rig.close()
        assert not set(JOURNALS) & set(await rig.files())
        again = await after_power_cut(rig)
        assert [log.log_end_offset for log in again.manager.all()] == [log.log_end_offset for log in logs]

    run(test)


def journal_of(batches: list[bytes]) -> tuple[bytes, list[bytes]]:
    """A file with a frame for every two batches, and where each frame ends."""

    async def test() -> bytes:
        rig = Rig()
        log = await rig.open()
        await rig.use_journal()
        for number, batch in enumerate(batches):
            await rig.append(log, batch, flush=number % 2 == 1)
        return bytes(rig.disk.contents(f"{DATA_DIR}/{JOURNALS[0]}"))

    return asyncio.run(test()), batches


CONTENT, BATCHES = journal_of([make_batch(mark=number) for number in range(6)])


@given(st.integers(min_value=0, max_value=len(CONTENT)))
def test_a_file_that_ends_early_gives_its_whole_frames(size_bytes: int) -> None:
    found = [batch[61:] for _, _, batch in journal.entries(CONTENT[:size_bytes])]
    assert found == [batch[61:] for batch in BATCHES[: len(found)]]
    assert len(found) == size_bytes * 3 // len(CONTENT) * 2


@given(st.integers(min_value=0, max_value=len(CONTENT) - 1), st.integers(min_value=1, max_value=255), st.binary())
def test_damage_ends_it_and_whatever_follows_is_nothing(position: int, change: int, more: bytes) -> None:
    damaged = bytearray(CONTENT)
    damaged[position] ^= change
    found = [batch[61:] for _, _, batch in journal.entries(bytes(damaged) + more)]
    assert found == [batch[61:] for batch in BATCHES[: position * 3 // len(CONTENT) * 2]]


@given(st.binary(max_size=200))
def test_garbage_is_nothing(content: bytes) -> None:
    assert list(journal.entries(content)) == []
