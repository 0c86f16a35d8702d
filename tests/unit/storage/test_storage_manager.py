"""The data folder: whose it is, what is in it, and how logs come and go."""

from __future__ import annotations

import asyncio

import pytest

from headpond.model import StorageFailed, TopicId, TopicPartition
from headpond.storage.errors import DataFolderForeign, DataFolderInUse, DataFolderUnusable
from simulation.harness.turns import settle
from unit.storage.storage_rig import CONFIG, DATA_DIR, NOW_MS, TOPIC_ID, TP, Rig, make_batch, read_all

OTHER_ID = TopicId(bytes(16 * [9]))


def test_a_folder_in_use_is_refused_by_name() -> None:
    async def run() -> None:
        rig = Rig()
        await rig.open()
        second = Rig(rig.disk)
        with pytest.raises(DataFolderInUse, match=DATA_DIR):
            await second.open()
        await rig.close()
        await second.open()

    asyncio.run(run())


def test_a_new_folder_gets_an_identity_and_another_clusters_or_nodes_folder_is_refused() -> None:
    async def run() -> None:
        rig = Rig()
        await rig.manager.lock()
        assert rig.manager.cluster_id is None
        await rig.manager.open(rig.known, lambda _: rig.config, "cluster-1", 1)
        text = rig.disk.contents(f"{DATA_DIR}/meta.properties").decode()
        assert "version=1\n" in text and "cluster.id=cluster-1\n" in text and "node.id=1\n" in text
        await rig.close()
        for cluster_id, node_id in (("cluster-2", 1), ("cluster-1", 2)):
            rig.manager = rig._manager()
            await rig.manager.lock()
            assert rig.manager.cluster_id == "cluster-1"
            with pytest.raises(DataFolderForeign):
                await rig.manager.open(rig.known, lambda _: rig.config, cluster_id, node_id)
            await rig.close()

    asyncio.run(run())


def test_a_folder_whose_identity_cannot_be_read_is_refused_and_let_go() -> None:
    async def run() -> None:
        rig = Rig()
        await rig.open()
        await rig.close()
        await rig.in_worker(rig.disk.write_file_atomically, f"{DATA_DIR}/meta.properties", b"version=7\n")
        for _ in range(2):
            with pytest.raises(DataFolderUnusable, match="version 7"):
                await rig.open()

    asyncio.run(run())


def test_the_clean_marker_is_there_only_between_a_clean_shutdown_and_the_next_start() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch())
        assert ".kafka_cleanshutdown" not in await rig.files()
        await rig.close()
        assert rig.disk.contents(f"{DATA_DIR}/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":-1}'
        await rig.open()
        assert ".kafka_cleanshutdown" not in await rig.files()

    asyncio.run(run())


def test_a_folder_that_cannot_be_marked_clean_is_closed_nevertheless_and_recovered_at_the_next_start() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        rig.disk.faults.fail_next_write(f"{DATA_DIR}/.kafka_cleanshutdown.tmp")
        await rig.close()
        assert ".kafka_cleanshutdown" not in await rig.files()
        log = await rig.open()
        assert log.log_end_offset == 1

    asyncio.run(run())


def test_a_clean_shutdown_leaves_indexes_snapshots_and_checkpoints_complete() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for number in range(25):
            await rig.append(log, make_batch(mark=number, timestamp_ms=NOW_MS + number))
        bases = list(log.segments.base_offsets)
        await rig.close()
        files = await rig.files(f"{DATA_DIR}/{TP}")
        for base in bases:
            assert {f"{base:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")} <= set(files)
        assert f"{25:020d}.snapshot" in files
        assert rig.disk.contents(f"{DATA_DIR}/recovery-point-offset-checkpoint") == b"0\n1\norders 0 25\n"
        assert rig.disk.contents(f"{DATA_DIR}/{TP}/leader-epoch-checkpoint") == b"0\n1\n0 0\n"
        last = rig.disk.contents(f"{DATA_DIR}/{TP}/{bases[-1]:020d}.timeindex")
        assert last[-12:-4] == (NOW_MS + 24).to_bytes(8, "big")

    asyncio.run(run())


def test_a_folder_that_nobody_knows_is_left_alone_and_reported() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        await rig.close()
        rig.known = {TopicPartition("another", 0): OTHER_ID}
        await rig.open()
        assert [(stray.tp, stray.topic_id) for stray in rig.manager.strays] == [(TP, TOPIC_ID)]
        assert str(TP) in await rig.files()
        assert rig.manager.get(TP) is None

    asyncio.run(run())


def test_a_folder_of_another_topic_with_the_same_name_is_set_aside() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        await rig.close()
        rig.known = {TP: OTHER_ID}
        log = await rig.open()
        assert log.log_end_offset == 0
        (aside,) = [name for name in await rig.files() if name.endswith("-stray")]
        assert aside.startswith(f"{TP}.")
        await rig.append(log, make_batch(mark=1), flush=True)
        assert len(await read_all(log)) == 1

    asyncio.run(run())


def test_a_stray_folder_is_set_aside_when_a_new_topic_takes_its_name() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        await rig.close()
        rig.known = {TopicPartition("another", 0): OTHER_ID}
        await rig.open()
        log = rig.manager.create(TP, OTHER_ID, CONFIG)
        appended = await rig.append(log, make_batch(mark=1), flush=True)
        assert appended.base_offset == 0
        assert [name for name in await rig.files() if name.endswith("-stray")]

    asyncio.run(run())


def test_a_known_folder_that_was_not_loaded_is_never_written_over() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        await rig.close()
        rig.known = {TopicPartition("another", 0): OTHER_ID}
        await rig.open()
        log = rig.manager.create(TP, TOPIC_ID, CONFIG)
        with pytest.raises(StorageFailed, match="not loaded"):
            await log.make_room(100, NOW_MS, NOW_MS)

    asyncio.run(run())


def test_a_deleted_log_is_gone_at_once_and_its_files_after_the_delay() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        await rig.checkpoint()
        await rig.manager.delete(TP)
        assert rig.manager.get(TP) is None
        assert not log.can_append(10, NOW_MS, NOW_MS)
        with pytest.raises(StorageFailed):
            await log.make_room(10, NOW_MS, NOW_MS)
        names = await rig.files()
        assert str(TP) not in names
        assert [name for name in names if name.startswith(f"{TP}.") and name.endswith("-delete")]
        rig.clock.advance(1.0)
        await settle()
        assert not [name for name in await rig.files() if name.startswith(str(TP))]
        await rig.checkpoint()

    asyncio.run(run())


def test_a_deletion_in_the_middle_of_a_checkpoint_round_does_not_hold_up_the_others() -> None:
    async def run() -> None:
        other = TopicPartition("other", 0)
        rig = Rig(known={TP: TOPIC_ID, other: TOPIC_ID})
        await rig.open()
        for log in rig.manager.all():
            await rig.append(log, make_batch())
        checkpoint = asyncio.ensure_future(rig.checkpoint())
        await asyncio.sleep(0)
        await rig.manager.delete(TP)
        await checkpoint
        await rig.checkpoint()
        left = rig.manager.get(other)
        assert left is not None and left.recovery_point == 1
        with pytest.raises(StorageFailed):
            await log_of_deleted(rig)

    async def log_of_deleted(rig: Rig) -> None:
        log = rig.manager.create(TP, TOPIC_ID, CONFIG)
        await rig.append(log, make_batch())
        await rig.manager.delete(TP)
        await log.flush()

    asyncio.run(run())


def test_deleting_a_log_without_files_or_twice_does_nothing() -> None:
    async def run() -> None:
        rig = Rig()
        await rig.open()
        await rig.manager.delete(TP)
        await rig.manager.delete(TP)
        assert str(TP) not in await rig.files()

    asyncio.run(run())


def test_a_topic_made_again_waits_until_the_old_folder_is_out_of_the_way() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        deletion = asyncio.ensure_future(rig.manager.delete(TP))
        await asyncio.sleep(0)
        log = rig.manager.create(TP, OTHER_ID, CONFIG)
        appended = await rig.append(log, make_batch(mark=1), flush=True)
        await deletion
        assert appended.base_offset == 0
        assert not [name for name in await rig.files() if name.endswith("-stray")]
        await rig.die()
        rig.known = {TP: OTHER_ID}
        assert (await rig.open()).log_end_offset == 1

    asyncio.run(run())


def test_what_a_crash_left_of_a_deletion_is_removed_at_the_next_start() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        await rig.manager.delete(TP)
        await rig.die()
        await rig.open()
        rig.clock.advance(0.001)
        await settle()
        assert not [name for name in await rig.files() if name.endswith("-delete")]

    asyncio.run(run())


def test_many_partitions_open_and_idle_without_touching_the_disk() -> None:
    async def run() -> None:
        known = {TopicPartition("many", number): TOPIC_ID for number in range(200)}
        rig = Rig(known=known)
        await rig.open()
        for log in rig.manager.all():
            await rig.append(log, make_batch())
        await rig.close()
        rig.disk.keeps_trace = True
        await rig.open()
        assert [log.log_end_offset for log in rig.manager.all()] == [1] * 200
        operations = len(rig.disk.trace)
        rig.clock.advance(25)
        await settle()
        assert len(rig.disk.trace) == operations

    asyncio.run(run())


def test_idle_producers_are_forgotten() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(producer_id=4, base_sequence=0))
        await settle()
        rig.clock.advance(86_400 + 600)
        await settle()
        assert log.producers.get(4) is None

    asyncio.run(run())


def test_the_high_watermark_of_the_last_run_is_known() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(5), flush=True)
        log.committed_end_offset = lambda: 3
        await rig.close()
        await rig.open()
        assert rig.manager.high_watermark_at_start(TP) == 3
        assert rig.manager.high_watermark_at_start(TopicPartition("x", 0)) == 0
        total, free = await rig.manager.space()
        assert 0 < free <= total

    asyncio.run(run())


def test_a_shutdown_in_the_middle_of_a_change_is_not_called_clean() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for number in range(20):
            await rig.append(log, make_batch(mark=number), flush=True)
        cut = asyncio.ensure_future(log.truncate_to(5))
        await settle(4)
        await rig.close()
        cut.cancel()
        assert ".kafka_cleanshutdown" not in await rig.files()
        log = await rig.open()
        batches = await read_all(log)
        assert [batch.base_offset for batch in batches] == list(range(log.log_end_offset))
        assert log.log_end_offset >= 5

    asyncio.run(run())


def test_a_change_that_ends_while_the_folder_is_closed_does_not_let_anything_in_behind_the_last_checkpoint() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        roll = asyncio.ensure_future(log.roll())
        await asyncio.sleep(0)  # in a worker now
        closing = asyncio.ensure_future(rig.manager.close())
        await roll
        assert not closing.done()
        assert not log.can_append(10, NOW_MS, NOW_MS)
        with pytest.raises(StorageFailed, match="is closed"):
            await log.make_room(10, NOW_MS, NOW_MS)
        await closing
        assert ".kafka_cleanshutdown" in await rig.files()
        await rig.tasks.cancel_all()

    asyncio.run(run())
