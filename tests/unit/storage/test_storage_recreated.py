"""A topic that is deleted and made again under its old name: nothing of the former one may touch the new one."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from headpond.model import TopicId, TopicPartition
from headpond.storage.log.segment_files import SyncFailed, sync_folder
from simulation.harness.turns import settle
from unit.storage.storage_rig import CONFIG, DATA_DIR, NOW_MS, TOPIC_ID, TP, Rig, make_batch, read_all

OTHER_ID = TopicId(bytes(16 * [9]))
THIRD_ID = TopicId(bytes(16 * [7]))


def test_a_former_topics_log_start_does_not_cost_the_new_one_its_records() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(10), flush=True)
        await log.advance_log_start(7)
        await rig.manager.delete(TP)
        log = rig.manager.create(TP, OTHER_ID, CONFIG)
        await rig.append(log, make_batch(3, mark=1), flush=True)
        await rig.die()
        rig.known = {TP: OTHER_ID}
        log = await rig.open()
        assert (log.log_start_offset, log.log_end_offset) == (0, 3)
        assert [batch.last_offset for batch in await read_all(log)] == [2]

    asyncio.run(run())


def test_a_former_topics_recovery_point_does_not_spare_the_new_one_its_checksums() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for _ in range(10):
            await rig.append(log, make_batch(10), flush=True)
        await rig.checkpoint()
        assert log.recovery_point == 100
        await rig.manager.delete(TP)
        log = rig.manager.create(TP, OTHER_ID, CONFIG)
        await rig.append(log, make_batch(mark=1), flush=True)
        size_bytes = log.size_bytes
        await rig.append(log, make_batch(mark=2))
        await rig.die()
        rig.disk.flip_bit(f"{DATA_DIR}/{TP}/00000000000000000000.log", size_bytes + 80)
        rig.known = {TP: OTHER_ID}
        assert (await rig.open()).log_end_offset == 1

    asyncio.run(run())


def test_checkpoints_of_a_topic_set_aside_at_start_do_not_count_for_its_successor() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(10), flush=True)
        await log.advance_log_start(7)
        await rig.close()
        rig.known = {TP: OTHER_ID}
        log = await rig.open()
        await rig.append(log, make_batch(3, mark=1), flush=True)
        await rig.die()
        log = await rig.open()
        assert (log.log_start_offset, log.log_end_offset) == (0, 3)

    asyncio.run(run())


def test_a_deleted_log_is_forgotten_before_the_deletion_is_waited_for() -> None:
    async def run() -> None:
        rig = Rig()
        old = await rig.open()
        await rig.append(old, make_batch(10), flush=True)
        deletion = rig.manager.delete(TP)
        assert rig.manager.get(TP) is None
        log = rig.manager.create(TP, OTHER_ID, CONFIG)
        rig.tasks.spawn("delete", deletion)
        assert (await rig.append(log, make_batch(), flush=True)).base_offset == 0
        assert rig.manager.get(TP) is log

    asyncio.run(run())


def test_a_name_deleted_again_while_its_first_deletion_runs_can_be_used_again() -> None:
    async def run() -> None:
        rig = Rig()
        first = await rig.open()
        await rig.append(first, make_batch(), flush=True)
        async with first._change:  # something still changes its files
            rig.tasks.spawn("delete 1", rig.manager.delete(TP))
            await settle()
            rig.manager.create(TP, OTHER_ID, CONFIG)
            rig.tasks.spawn("delete 2", rig.manager.delete(TP))
            await settle()
            third = rig.manager.create(TP, THIRD_ID, CONFIG)
            append = asyncio.ensure_future(rig.append(third, make_batch(), flush=True))
            await settle()
            assert not append.done()
        assert (await append).base_offset == 0
        await settle()
        assert not rig.manager._deletions and len(rig.tasks) == 4  # the housekeeping loops
        assert str(TP) in await rig.files()

    asyncio.run(run())


def test_a_deletion_waits_for_the_checkpoint_round_that_writes_into_its_folder() -> None:
    async def run() -> None:
        rig = Rig(config=msgspec.structs.replace(CONFIG, segment_bytes=100_000))
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        async with rig.manager._rounds._lock:  # a round is under way
            rig.tasks.spawn("delete", rig.manager.delete(TP))
            await settle()
            assert str(TP) in await rig.files()
        await settle()
        assert str(TP) not in await rig.files()

    asyncio.run(run())


def test_a_roll_that_ends_after_the_deletion_began_does_not_make_the_shutdown_unclean() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        rolling = asyncio.ensure_future(log.roll())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await rig.manager.delete(TP)
        await rolling
        assert log not in rig.manager._rounds.touched
        await rig.close()
        assert ".kafka_cleanshutdown" in await rig.files()

    asyncio.run(run())


def test_a_folder_that_is_gone_is_no_failed_sync() -> None:
    async def run() -> None:
        rig = Rig(known={TP: TOPIC_ID, TopicPartition("other", 0): TOPIC_ID})
        log = await rig.open()
        with pytest.raises(FileNotFoundError) as caught:
            await rig.in_worker(sync_folder, rig.disk, f"{DATA_DIR}/nowhere")
        assert not isinstance(caught.value, SyncFailed)
        # The same through a round: the partition's folder goes just before it is synced.
        await rig.append(log, make_batch(), flush=True)
        await rig.in_worker(rig.disk.rename, log.path, f"{DATA_DIR}/elsewhere")
        await rig.checkpoint()
        assert not rig.fatal
        assert rig.clock.now_ms() == NOW_MS

    asyncio.run(run())
