"""After a failed sync memory holds what the disk never got: the next start believes the disk."""

from __future__ import annotations

import asyncio
import random

import pytest

from headpond.model import StorageFailed
from headpond.storage.folder.names import SYNC_FAILED
from unit.storage.storage_rig import DATA_DIR, TP, Rig, make_batch, read_all


def test_what_a_failed_sync_lost_is_not_taken_from_memory_at_the_next_start() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(mark=1), flush=True)
        rig.disk.faults.fail_next_syncs()
        with pytest.raises(StorageFailed):
            await rig.append(log, make_batch(mark=2), flush=True)
        assert len(rig.fatal) == 1
        await rig.die()
        assert len(rig.disk.contents(f"{DATA_DIR}/{TP}/00000000000000000000.log")) == log.size_bytes, "in memory"
        assert SYNC_FAILED in await rig.files()
        log = await rig.open()
        assert log.log_end_offset == 1
        assert len(await read_all(log)) == 1
        assert SYNC_FAILED not in await rig.files()
        assert (await rig.append(log, make_batch(mark=3), flush=True)).base_offset == 1

    asyncio.run(run())


def test_what_was_not_yet_written_back_is_kept_when_memory_is_not_believed() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(mark=1), flush=True)
        await rig.append(log, make_batch(mark=2))
        rig.disk.leave_note(f"{DATA_DIR}/{SYNC_FAILED}")
        await rig.die()
        assert (await rig.open()).log_end_offset == 2

    asyncio.run(run())


def test_memory_is_distrusted_until_a_recovery_has_come_to_its_end() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(mark=1), flush=True)
        rig.disk.faults.fail_next_syncs()
        with pytest.raises(StorageFailed):
            await rig.append(log, make_batch(mark=2), flush=True)
        await rig.die()
        rig.disk.faults.fail_syncs()
        with pytest.raises(OSError):
            await rig.open()
        await rig.die()
        rig.disk.faults.heal()
        assert SYNC_FAILED in await rig.files()
        assert (await rig.open()).log_end_offset == 1

    asyncio.run(run())


@pytest.mark.parametrize("segment_bytes", [1 << 20, 200])
def test_a_process_that_is_killed_before_it_notes_the_failed_sync_loses_nothing_that_comes_later(
    segment_bytes: int,
) -> None:
    """Taken from memory, the record that the device never got would be a hole before them."""

    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=segment_bytes)
        log = await rig.open()
        await rig.append(log, make_batch(mark=1), flush=True)
        rig.disk.faults.fail_next_syncs()
        with pytest.raises(StorageFailed):
            await rig.append(log, make_batch(mark=2), flush=True)
        await rig.die()
        await rig.in_worker(rig.disk.remove, f"{DATA_DIR}/{SYNC_FAILED}")  # never noted
        log = await rig.open()
        assert (await rig.append(log, make_batch(mark=3), flush=True)).base_offset == 1
        await rig.die()
        rig.disk.power_cut(random.Random(1))
        assert len(await read_all(await rig.open())) == 2

    asyncio.run(run())
