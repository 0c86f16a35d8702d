"""Folders that nobody knows: what is found in them, and what makes them safe to load."""

from __future__ import annotations

import asyncio
import random

from headpond.model import TopicPartition
from headpond.storage.folder.checkpoint_files import encode_offsets, read_offsets
from headpond.storage.recovery.adoption import look_into, make_ready, strays
from headpond.storage.recovery.inspection import Inspected
from unit.storage.storage_rig import DATA_DIR, TOPIC_ID, TP, Rig, make_batch, read_all

FOLDER = f"{DATA_DIR}/{TP}"


async def written(rig: Rig, batches: int = 60) -> None:
    log = await rig.open()
    for number in range(batches):
        await rig.append(log, make_batch(mark=number), epoch=3)
    await rig.close()


async def look(rig: Rig) -> list[Inspected]:
    found = await rig.in_worker(lambda: strays(rig.disk, DATA_DIR, leave_out=(), topics=None))
    return [await rig.in_worker(lambda each=each: look_into(rig.disk, each, settle=True)) for each in found]


def test_a_sound_folder_is_read_to_its_end() -> None:
    async def run() -> None:
        rig = Rig()
        await written(rig)
        (found,) = await look(rig)
        assert found.problem is None and found.topic_id == TOPIC_ID
        assert (found.start_offset, found.end_offset, found.leader_epoch, found.torn_bytes) == (0, 60, 3, 0)
        assert found.segments > 3

    asyncio.run(run())


def test_damage_in_the_last_segment_is_a_torn_end_and_before_it_a_reason_to_refuse() -> None:
    async def run() -> None:
        rig = Rig()
        await written(rig)
        logs = [name for name in await rig.files(FOLDER) if name.endswith(".log")]
        rig.disk.flip_bit(f"{FOLDER}/{logs[-1]}", 130)
        (found,) = await look(rig)
        assert found.problem is None and found.torn_bytes > 0 and found.end_offset < 60
        rig.disk.flip_bit(f"{FOLDER}/{logs[1]}", 130)
        (found,) = await look(rig)
        assert found.problem is not None and found.problem.startswith(f"segment {int(logs[1][:20])} is damaged at byte")

    asyncio.run(run())


def test_a_missing_segment_is_not_damage_but_what_compaction_leaves_and_survives_a_crash() -> None:
    """Without a recovery point, recovery would take the hole for a power cut and drop what lies behind."""

    async def run() -> None:
        rig = Rig()
        await written(rig)
        logs = [name for name in await rig.files(FOLDER) if name.endswith(".log")]
        await rig.in_worker(rig.disk.remove, f"{FOLDER}/{logs[1]}")
        await rig.in_worker(rig.disk.remove, f"{DATA_DIR}/recovery-point-offset-checkpoint")
        (found,) = await look(rig)
        assert found.problem is None and found.end_offset == 60
        await rig.in_worker(lambda: make_ready(rig.disk, DATA_DIR, [found], keep_log_starts=False))
        rig.disk.power_cut(random.Random(0))
        log = await rig.open()
        assert log.log_end_offset == 60
        offsets = [batch.base_offset for batch in await read_all(log)]
        gone = range(int(logs[1][:20]), int(logs[2][:20]))
        assert offsets == [offset for offset in range(60) if offset not in gone]

    asyncio.run(run())


def test_a_folder_without_an_identity_is_given_one() -> None:
    async def run() -> None:
        rig = Rig()
        await written(rig)
        await rig.in_worker(rig.disk.remove, f"{FOLDER}/partition.metadata")
        (found,) = await look(rig)
        assert found.topic_id is None
        adopted = found._replace(topic_id=TOPIC_ID)
        await rig.in_worker(lambda: make_ready(rig.disk, DATA_DIR, [adopted], keep_log_starts=False))
        (found,) = await look(rig)
        assert found.topic_id == TOPIC_ID

    asyncio.run(run())


def test_what_was_clean_of_a_former_partition_of_that_name_is_dirty_of_an_adopted_one() -> None:
    """Else its tombstones would go, and what they delete would stay."""

    async def run() -> None:
        rig = Rig()
        await written(rig)
        checkpoint = f"{DATA_DIR}/cleaner-offset-checkpoint"
        both = {TP: 40, TopicPartition("others", 1): 7}
        await rig.in_worker(rig.disk.write_file_atomically, checkpoint, encode_offsets(both))
        found = await look(rig)
        await rig.in_worker(lambda: make_ready(rig.disk, DATA_DIR, found, keep_log_starts=True))
        assert await rig.in_worker(read_offsets, rig.disk, checkpoint) == both  # it came with the partitions
        await rig.in_worker(lambda: make_ready(rig.disk, DATA_DIR, found, keep_log_starts=False))
        assert await rig.in_worker(read_offsets, rig.disk, checkpoint) == {TopicPartition("others", 1): 7}

    asyncio.run(run())
