"""Compaction when something goes wrong or changes under it: one log's trouble is nobody else's, the deleted stay so."""

from __future__ import annotations

import asyncio
import pickle
import pickletools

import msgspec
import pytest

from headpond.config.compaction import CompactionSettings
from headpond.model import TopicId, TopicPartition
from headpond.storage.compaction import cleaner
from headpond.storage.compaction.choice import Dirt
from headpond.storage.log.log import PartitionLog
from headpond.storage.manager import StorageConfig
from headpond.storage.producers.txn_index import AbortedTxn
from simulation.harness.turns import settle
from unit.storage.compaction_rig import (
    BY_HAND,
    COMPACTED,
    batches_of,
    compact,
    compacted_log,
    compactor_of,
    kept,
    keyed,
    table,
)
from unit.storage.storage_rig import NOW_MS, TOPIC_ID, TP, Rig

OTHER = TopicPartition("others", 0)
OTHER_ID = TopicId(bytes(16 * [9]))
FOREVER_MS = 9_223_372_036_854_775_807


def log_of(rig: Rig, tp: TopicPartition) -> PartitionLog:
    log = rig.manager.get(tp)
    assert log is not None
    return log


# --- one log's trouble ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError(), ValueError("never seen before")])
def test_a_log_that_always_fails_does_not_keep_the_others_from_being_cleaned(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def walk(*arguments: object) -> object:
        raise error

    async def run() -> None:
        rig = Rig(config=COMPACTED, storage=BY_HAND, known={TP: TOPIC_ID, OTHER: OTHER_ID})
        failing = await rig.open()
        for number in range(9):
            await rig.append(failing, keyed(("a", str(number)), ("b", "1")))
        fine = log_of(rig, OTHER)
        await rig.append(fine, keyed(("a", "1"), ("a", "2")), flush=True)
        for log in (failing, fine):
            await log.roll()
            await log.flush()
        await rig.append(fine, keyed(("z", "1")), flush=True)
        await rig.checkpoint()
        original = cleaner._Cleaning._batches
        monkeypatch.setattr(
            cleaner._Cleaning,
            "_batches",
            lambda self, segment: walk() if "orders" in self._job.path else original(self, segment),
        )
        for _ in range(2):  # as the loop does it: what fails is not raised
            await compactor_of(rig)._clean_one()
        assert [each.offset for each in await kept(fine)] == [1, 2]
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_a_log_that_fails_in_a_way_nobody_knows_is_left_alone_after_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        rig = Rig(config=COMPACTED, storage=BY_HAND)
        log = await rig.open()
        await rig.append(log, keyed(("a", "1"), ("a", "2")))

        def fail(*arguments: object) -> None:
            raise MemoryError

        monkeypatch.setattr(cleaner._Cleaning, "_batches", fail)
        await log.roll()
        await log.flush()
        await rig.checkpoint()
        for _ in range(3):
            assert log not in compactor_of(rig).uncleanable
            assert not await compactor_of(rig).clean_dirtiest()
        assert log in compactor_of(rig).uncleanable
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_a_log_that_was_cut_while_it_was_read_is_no_damaged_log() -> None:
    """The worker process meets the end of a file too early: that is not what a disk has done."""

    async def run() -> None:
        rig = Rig(config=COMPACTED, storage=BY_HAND)
        log = await rig.open()
        for number in range(6):
            await rig.append(log, keyed((f"k{number}", "x" * 40)))
            await log.roll()
        await log.flush()
        await rig.checkpoint()
        compactor = compactor_of(rig)
        stale = compactor.dirt_of(log)
        await log.truncate_to(2)
        await rig.append(log, keyed(("k0", "other"), ("k1", "y" * 500)))
        await log.roll()
        await log.flush()
        await rig.checkpoint()
        assert not await compactor.clean(log, stale)  # type: ignore[arg-type]
        assert log not in compactor.uncleanable
        await compact(rig, log)
        assert [each.offset for each in await kept(log)] == [2, 3]
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_a_log_that_another_loop_has_cleaned_meanwhile_is_no_damaged_log() -> None:
    async def run() -> None:
        rig = Rig(config=COMPACTED, storage=BY_HAND)
        log = await rig.open()
        for number in range(6):
            await rig.append(log, keyed(("k", str(number)), ("k", "x" * 40)))
        await log.roll()
        await log.flush()
        await rig.checkpoint()
        compactor = compactor_of(rig)
        stale = compactor.dirt_of(log)
        assert await compactor.clean_dirtiest()
        await compactor.clean(log, stale)  # type: ignore[arg-type]
        assert log not in compactor.uncleanable
        assert [each.offset for each in await kept(log)] == [11]
        await rig.tasks.cancel_all()

    asyncio.run(run())


# --- deleted keys -----------------------------------------------------------------------------------------------------


def test_what_was_clean_of_a_former_topic_is_dirty_of_its_successor_also_after_a_restart() -> None:
    """Its tombstones would go, and what they delete would stay."""

    async def run() -> None:
        rig = Rig(config=COMPACTED, storage=BY_HAND)
        log = await rig.open()
        for number in range(4):
            await rig.append(log, keyed(("a", str(number)), ("b", str(number))))
        await compact(rig, log)
        assert compactor_of(rig)._rounds.cleaned_end_offset(log) == 8
        await rig.manager.delete(TP)
        rig.known = {}
        await rig.close()
        rig.known = {OTHER: OTHER_ID}
        await rig.open()
        log = rig.manager.create(TP, OTHER_ID, COMPACTED)
        await rig.append(log, keyed(("a", "1"), ("b", "1")))
        await rig.append(log, keyed(("a", None), ("c", "1")))
        await rig.append(log, keyed(*((f"k{number}", "x") for number in range(5))), flush=True)
        assert compactor_of(rig)._rounds.cleaned_end_offset(log) is None
        await compact(rig, log)
        rig.clock.advance(20)
        await rig.append(log, keyed(("d", "1"), timestamp_ms=rig.clock.now_ms()))
        await compact(rig, log)
        assert b"a" not in table(await kept(log))
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_tombstones_that_shall_stay_for_ever_do() -> None:
    async def run() -> None:
        rig, log = await compacted_log(msgspec.structs.replace(COMPACTED, delete_retention_ms=FOREVER_MS))
        await rig.append(log, keyed(("a", "1"), ("b", "1")))
        await rig.append(log, keyed(("a", None), ("c", "1")))
        assert await compact(rig, log)
        rig.clock.advance(10_000_000_000)
        await rig.append(log, keyed(("c", "2"), timestamp_ms=rig.clock.now_ms()))
        assert await compact(rig, log)
        found = await kept(log)
        assert [(each.key, each.value) for each in found] == [(b"b", b"1"), (b"a", None), (b"c", b"2")]
        assert [each.timestamp for each in found][:2] == [NOW_MS, NOW_MS]
        await rig.tasks.cancel_all()

    asyncio.run(run())


# --- what is known about a cleaned segment ----------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
def test_the_largest_timestamp_is_that_of_a_record_and_not_of_a_batch_that_lost_them_all(restart: bool) -> None:
    async def run() -> None:
        rig, log = await compacted_log(msgspec.structs.replace(COMPACTED, segment_bytes=200))
        await rig.append(log, keyed(("b", "1" * 60), timestamp_ms=NOW_MS + 1))
        of_a_producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}  # its last one: a header stays
        await rig.append(log, keyed(("a", "1"), timestamp_ms=NOW_MS + 50, **of_a_producer))
        await log.roll()
        await rig.append(log, keyed(("a", "2"), timestamp_ms=NOW_MS + 9))
        await compact(rig, log)
        if restart:
            await rig.in_worker(rig.disk.remove, f"{log.path}/00000000000000000000.timeindex")
            await rig.close()
            log = await rig.open()
        assert [(batch.base_offset, batch.count) for batch in await batches_of(log)] == [(0, 1), (1, 0), (2, 1)]
        found = await log.max_timestamp(up_to_end_offset=log.log_end_offset)
        assert found is not None and (found.timestamp, found.offset) == (NOW_MS + 9, 2)
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_an_index_that_is_made_anew_while_its_segment_is_replaced_is_not_written_over_the_new_ones() -> None:
    async def run() -> None:
        rig = Rig(config=COMPACTED, storage=BY_HAND)
        log = await rig.open()
        for number in range(5):
            await rig.append(log, keyed(("k", str(number) * 60)))
        await log.roll()
        await log.flush()
        await rig.checkpoint()
        await kept(log)
        old = log.segments[0]
        rebuilding = asyncio.ensure_future(log.reads._rebuild_index(old))
        await asyncio.sleep(0)
        assert old.pins == 1
        log.reads.changed([old])  # as retention, a cut or a swap would do it
        await rebuilding
        assert old not in log.unsaved
        await rig.tasks.cancel_all()

    asyncio.run(run())


# --- limits -----------------------------------------------------------------------------------------------------------


def test_many_small_logs_are_held_back_as_one_large_one_is() -> None:
    async def run() -> None:
        settings = CompactionSettings(is_enabled=False, bytes_per_s_max=1_000)
        rig = Rig(config=COMPACTED, storage=StorageConfig(recovery_threads=1, compaction=settings))
        log = await rig.open()
        await rig.append(log, keyed(("a", "1" * 200), ("a", "2")))
        await log.roll()
        await log.flush()
        await rig.checkpoint()
        cleaning = asyncio.ensure_future(compactor_of(rig).clean_dirtiest())
        await settle()
        await settle()
        assert not cleaning.done()
        rig.clock.advance(2)
        assert await asyncio.wait_for(cleaning, 5)
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_the_time_that_the_work_takes_itself_is_not_waited_for_again_and_all_loops_share_one_pace() -> None:
    async def run() -> None:
        settings = CompactionSettings(is_enabled=False, bytes_per_s_max=1_000, threads=4)
        rig = Rig(config=COMPACTED, storage=StorageConfig(recovery_threads=1, compaction=settings))
        await rig.open()
        compactor, clock = compactor_of(rig), rig.clock
        started_s = clock.monotonic()

        async def waited_s(size_bytes: int, working_since_s: float) -> float:
            now_s = clock.monotonic()
            await clock.run_until(asyncio.ensure_future(compactor._hold_back(size_bytes, working_since_s)))
            return round(clock.monotonic() - now_s, 3)

        assert await waited_s(500, started_s) == 0.5
        clock.advance(0.4)  # the next step is worked at
        assert await waited_s(500, clock.monotonic() - 0.4) == 0.1
        clock.advance(2)
        assert await waited_s(500, clock.monotonic() - 2) == 0
        both_s = clock.monotonic()
        await clock.run_until(asyncio.gather(compactor._hold_back(1_000, both_s), compactor._hold_back(1_000, both_s)))
        assert round(clock.monotonic() - both_s, 3) == 2
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_a_log_held_back_by_a_pace_of_next_to_nothing_goes_on_at_another_pace_and_ends_with_its_topic() -> None:
    async def run() -> None:
        crawling = CompactionSettings(is_enabled=False, bytes_per_s_max=5e-324)
        rig = Rig(config=COMPACTED, storage=StorageConfig(recovery_threads=1, compaction=crawling))
        await rig.open()
        compactor, clock = compactor_of(rig), rig.clock
        is_gone = False
        faster = asyncio.ensure_future(compactor._hold_back(1_000, clock.monotonic()))
        deleted = asyncio.ensure_future(compactor._hold_back(1_000, clock.monotonic(), lambda: is_gone))
        for _ in range(3):
            await settle()
            clock.advance(3_600)
        assert not faster.done() and not deleted.done()
        is_gone = True
        await settle()
        clock.advance(1)
        await asyncio.wait_for(deleted, 5)
        assert not faster.done()
        compactor.configure(msgspec.structs.replace(crawling, bytes_per_s_max=1_000_000))
        clock.advance(1)
        await asyncio.wait_for(faster, 5)
        await rig.tasks.cancel_all()

    asyncio.run(run())


def test_a_job_takes_no_longer_to_pack_for_the_pipe_with_many_producers_and_aborts() -> None:
    async def run() -> None:
        steps = []
        for count in (1, 300):
            rig, log = await compacted_log(msgspec.structs.replace(COMPACTED, segment_bytes=1 << 20))
            for number in range(count):
                await rig.append(log, keyed(("a", "1"), producer_id=number, producer_epoch=0, base_sequence=0))
            log.aborted = [AbortedTxn(number, number, number, number) for number in range(count)]
            await log.roll()
            await log.flush()
            await rig.checkpoint()
            dirt = compactor_of(rig).dirt_of(log)
            assert isinstance(dirt, Dirt)
            job = await compactor_of(rig)._job(log, dirt)
            steps.append(sum(1 for _ in pickletools.genops(pickle.dumps(job))))
            await rig.tasks.cancel_all()
        assert steps[0] == steps[1]

    asyncio.run(run())


# --- start ------------------------------------------------------------------------------------------------------------


def test_compaction_begins_by_itself_with_the_first_log_that_asks_for_it_and_costs_nothing_before() -> None:
    async def run() -> None:
        rig = Rig(config=msgspec.structs.replace(COMPACTED, compacts=False))
        log = await rig.open()
        await rig.append(log, keyed(("a", "1"), ("a", "2")))
        await log.roll()
        await log.flush()
        await rig.checkpoint()
        for _ in range(3):
            rig.clock.advance(16)
            await settle()
        assert rig.manager.compactor is None
        rig.reconfigure(compacts=True)
        for _ in range(3):
            rig.clock.advance(16)
            await settle()
        assert [each.offset for each in await kept(log)] == [1]
        await rig.close()

    asyncio.run(run())
