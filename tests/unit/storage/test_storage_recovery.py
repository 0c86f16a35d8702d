"""What a start makes of the files it finds: little work behind the recovery point, and nothing believed blindly."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from headpond.model import BrokerError, ErrorCode, StorageFailed
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.log import log as log_module
from headpond.storage.log.log import PartitionLog
from headpond.storage.recovery import index_files
from simulation.harness.disk import SimulatedDisk
from simulation.harness.turns import settle
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TP, Rig, make_batch, read_all

FOLDER = f"{DATA_DIR}/{TP}"


def path(offset: int, suffix: str) -> str:
    return f"{FOLDER}/{offset:020d}{suffix}"


async def fill(rig: Rig, log: PartitionLog, batches: int, *, first: int = 0) -> None:
    for number in range(first, first + batches):
        batch = make_batch(mark=number, timestamp_ms=NOW_MS + number, producer_id=5, base_sequence=number)
        await rig.append(log, batch, epoch=number // 10)
    await log.flush()


def overwrite(disk: SimulatedDisk, name: str, data: bytes) -> None:
    file = disk.open(name, create=True)
    file.truncate(0)
    file.write(data)
    file.close()


def test_after_a_crash_only_what_lies_behind_the_recovery_point_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_checkpoint, "SNAPSHOT_BYTES", 2_000)
    monkeypatch.setattr(index_files, "INDEX_LAG_BYTES", 1_000)

    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=1 << 20)
        log = await rig.open()
        await fill(rig, log, 100)
        await rig.checkpoint()
        recovery_point, below = log.log_end_offset, log.size_bytes
        await fill(rig, log, 5, first=100)
        expected = [batch.data for batch in await read_all(log)]
        rig.disk.flip_bit(path(0, ".log"), 150)  # far below: nobody looks there
        await rig.die()
        log = await rig.open()
        assert log.log_end_offset == 105
        assert log.recovery_point == recovery_point
        assert rig.manager.scanned_bytes < 3_000
        active = log.segments[0]
        assert active.index is not None and len(active.index) > 30
        assert [batch.data for batch in await read_all(log, from_offset=50)] == expected[50:]
        state = log.producers.get(5)
        assert state is not None and state.last_sequence == 104
        assert [entry.epoch for entry in log.epochs.entries] == list(range(11))
        assert below > 8_000  # of which little was read

    asyncio.run(run())


def test_a_growing_index_is_left_alone_until_it_lacks_several_entries_and_a_crash_costs_none_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_files, "INDEX_LAG_BYTES", 1_000)

    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=1 << 20)
        log = await rig.open()
        await fill(rig, log, 100)
        await rig.checkpoint()
        index = log.segments[0].index
        assert index is not None
        written, number = await index_bytes(rig), 100
        written_to = index.last_position
        while log.size_bytes - written_to < 850:  # a batch before the limit
            await fill(rig, log, 1, first=number)
            await rig.checkpoint()
            number += 1
            assert await index_bytes(rig) == written
        assert len(index) * 8 > written + 8 * 3
        assert log.recovery_point == log.log_end_offset == number
        entries = list(index.positions), list(index.relative_offsets)
        await rig.die()
        log = await rig.open()
        recovered = log.segments[0].index
        assert recovered is not None
        assert (list(recovered.positions), list(recovered.relative_offsets)) == entries
        while log.size_bytes - written_to < 1_000:
            await fill(rig, log, 1, first=number)
            number += 1
        await rig.checkpoint()
        assert await index_bytes(rig) == len(recovered) * 8

    asyncio.run(run())


def test_a_graceful_stop_writes_the_whole_index() -> None:
    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=1 << 20)
        log = await rig.open()
        await fill(rig, log, 50)
        await rig.checkpoint()
        await fill(rig, log, 5, first=50)
        index = log.segments[0].index
        assert index is not None
        await rig.close()
        assert await index_bytes(rig) == len(index) * 8

    asyncio.run(run())


async def index_bytes(rig: Rig) -> int:
    return len(await rig.in_worker(rig.disk.read_file, path(0, ".index")))


@pytest.mark.parametrize(
    "damage",
    [
        lambda disk: disk.remove(path(0, ".index")),
        lambda disk: disk.remove(path(0, ".timeindex")),
        lambda disk: overwrite(disk, path(0, ".index"), b"garbage!" * 5),
        lambda disk: overwrite(disk, path(0, ".index"), bytes(80)),
        lambda disk: overwrite(disk, path(0, ".index"), b"\0\0\0\1\0\0\0\7\0\0\0\2\0\0\0\x09"),  # plausible, but lies
        lambda disk: overwrite(disk, path(0, ".timeindex"), b"garbage!" * 5),
        lambda disk: overwrite(disk, f"{FOLDER}/leader-epoch-checkpoint", b"garbage"),
        lambda disk: disk.remove(f"{FOLDER}/leader-epoch-checkpoint"),
        lambda disk: overwrite(disk, f"{DATA_DIR}/recovery-point-offset-checkpoint", b"garbage"),
        lambda disk: [disk.remove(f"{FOLDER}/{name}") for name in disk.list_dir(FOLDER) if name.endswith(".snapshot")],
        lambda disk: [
            overwrite(disk, f"{FOLDER}/{name}", b"garbage")
            for name in disk.list_dir(FOLDER)
            if name.endswith(".snapshot")
        ],
        lambda disk: overwrite(disk, path(77, ".index"), b""),  # an index without its log
        lambda disk: overwrite(disk, path(0, ".log.deleted"), b"x"),
        lambda disk: overwrite(disk, path(3, ".log.cleaned"), b"x"),
    ],
)
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [1_000, 1 << 20])
def test_what_is_missing_or_damaged_beside_the_batches_is_made_anew(
    damage: Callable[[SimulatedDisk], object], is_clean: bool, segment_bytes: int
) -> None:
    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=segment_bytes)
        log = await rig.open()
        await fill(rig, log, 40)
        await rig.checkpoint()
        await fill(rig, log, 3, first=40)
        expected = [batch.data for batch in await read_all(log)]
        await (rig.close() if is_clean else rig.die())
        await rig.in_worker(damage, rig.disk)
        log = await rig.open()
        assert [batch.data for batch in await read_all(log)] == expected
        for offset in range(43):
            read = await log.read_cold(offset, up_to_end_offset=43, size_bytes_max=1, at_least_one_batch=True)
            assert bytes(read.data) == expected[offset]
            found = await log.offset_for_timestamp(NOW_MS + offset, up_to_end_offset=43)
            assert found == (NOW_MS + offset, offset, offset // 10)
        assert [entry.epoch for entry in log.epochs.entries] == list(range(5))
        left = await rig.files(FOLDER)
        assert not [
            name for name in left if name.endswith((".deleted", ".cleaned")) or name.startswith("0" * 18 + "77")
        ]
        await rig.die()

    asyncio.run(run())


def test_a_lost_snapshot_after_a_crash_costs_no_producer() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 40)
        await rig.checkpoint()
        await rig.die()
        for name in await rig.files(FOLDER):
            if name.endswith(".snapshot"):
                await rig.in_worker(rig.disk.remove, f"{FOLDER}/{name}")
        log = await rig.open()
        state = log.producers.get(5)
        assert state is not None and state.last_sequence == 39

    asyncio.run(run())


@pytest.mark.parametrize("tail", [b"x", bytes(200), b"\0" * 61 + b"garbage" * 9])
def test_what_is_no_batch_is_cut_off(tail: bytes) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 3)
        size_bytes = log.size_bytes
        assert log.active is not None and log.active.file is not None
        log.active.file.write(tail)
        await rig.die()
        log = await rig.open()
        assert (log.log_end_offset, log.size_bytes) == (3, size_bytes)
        assert len(rig.disk.contents(path(0, ".log"))) == size_bytes

    asyncio.run(run())


def test_a_batch_that_fails_its_crc_ends_the_log_and_later_segments_are_set_aside() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        second = log.segments[1]
        size = log.size_bytes // 30
        rig.disk.flip_bit(path(second.base_offset, ".log"), size + 70)
        await rig.die()
        log = await rig.open()
        assert log.log_end_offset == second.base_offset + 1
        assert len(log.segments) == 2
        assert any(name.endswith(".log.deleted") for name in await rig.files(FOLDER))
        rig.clock.advance(2)
        await asyncio.sleep(0)
        assert not any(name.endswith(".deleted") for name in await rig.files(FOLDER))

    asyncio.run(run())


def test_corruption_below_the_recovery_point_is_refused_when_it_is_read() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        size = log.size_bytes // 30
        await rig.close()
        for position in (size + 8, size + 16, size * 4 + 16):
            for bit in (0, 5):
                rig.disk.flip_bit(path(0, ".log"), position, bit)
        log = await rig.open()
        read = await log.read_cold(0, up_to_end_offset=30, size_bytes_max=10, at_least_one_batch=True)
        assert read.next_offset == 1
        for offset in (1, 4):
            with pytest.raises(BrokerError) as caught:
                await log.read_cold(offset, up_to_end_offset=30, size_bytes_max=10, at_least_one_batch=True)
            assert caught.value.code == ErrorCode.CORRUPT_MESSAGE

    asyncio.run(run())


@pytest.mark.parametrize("is_clean", [True, False])
def test_damage_in_a_segment_that_was_durable_is_not_the_end_of_the_log(is_clean: bool) -> None:
    """Its indexes are gone, so that it is read for what its batches tell; what stands behind the damage stays."""

    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        await rig.checkpoint()
        first, second = log.segments[0].base_offset, log.segments[1].base_offset
        size = log.size_bytes // 30
        await (rig.close() if is_clean else rig.die())
        for suffix in (".index", ".timeindex"):
            await rig.in_worker(rig.disk.remove, path(first, suffix))
        rig.disk.flip_bit(path(second, ".log"), size + 16)
        for _ in range(2):
            log = await rig.open()
            assert (log.log_start_offset, log.log_end_offset) == (0, 30)
            assert not any(name.endswith(".deleted") for name in await rig.files(FOLDER))
            with pytest.raises(BrokerError) as caught:
                await log.read_cold(second + 1, up_to_end_offset=30, size_bytes_max=10, at_least_one_batch=True)
            assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
            await rig.close()

    asyncio.run(run())


def test_a_log_that_grew_asks_for_its_checkpoint_before_the_second_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "CHECKPOINT_BYTES", 500)

    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for number in range(3):
            await rig.append(log, make_batch(mark=number), flush=True)
            await asyncio.sleep(0)
        assert log.recovery_point == 0
        for number in range(5):
            await rig.append(log, make_batch(mark=number), flush=True)
        await settle(20)
        assert log.recovery_point >= 5

    asyncio.run(run())


def test_a_second_after_a_change_the_recovery_point_follows() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        await asyncio.sleep(0)
        rig.clock.advance(1.0)
        await settle(20)
        assert log.recovery_point == 1
        assert rig.disk.contents(f"{DATA_DIR}/recovery-point-offset-checkpoint") == b"0\n1\norders 0 1\n"
        assert rig.disk.contents(f"{DATA_DIR}/replication-offset-checkpoint") == b"0\n1\norders 0 1\n"
        operations = len(rig.disk.trace)
        rig.clock.advance(60.0)
        await settle(20)
        assert len(rig.disk.trace) == operations  # an idle log costs nothing

    asyncio.run(run())


def test_a_full_disk_postpones_the_checkpoint_and_loses_nothing() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 10)
        rig.disk.faults.space_bytes = 5
        await rig.checkpoint()
        assert log.recovery_point == 0
        rig.disk.faults.heal()
        await rig.checkpoint()
        assert log.recovery_point == 10
        await rig.die()
        log = await rig.open()
        assert log.log_end_offset == 10

    asyncio.run(run())


def test_an_interrupted_compaction_is_finished_or_undone_as_kafka_does() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        bases = list(log.segments.base_offsets)
        await rig.close()
        disk = rig.disk
        # The first segment, compacted to its last batch: swapped in.
        content = disk.contents(path(0, ".log"))
        size = len(content) // bases[1]
        await rig.in_worker(overwrite, disk, path(0, ".log.swap"), content[-size:])
        await rig.in_worker(overwrite, disk, path(0, ".index.swap"), b"")
        await rig.in_worker(overwrite, disk, path(0, ".timeindex.swap"), b"")
        log = await rig.open()
        offsets = [batch.base_offset for batch in await read_all(log)]
        assert offsets == list(range(bases[1] - 1, 30))
        assert not [name for name in await rig.files(FOLDER) if name.endswith(".swap")]
        read = await log.read_cold(0, up_to_end_offset=30, size_bytes_max=1, at_least_one_batch=True)
        assert read.next_offset == bases[1]

    asyncio.run(run())


def test_a_log_that_ends_before_its_log_start_begins_there_anew() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 5)
        await rig.die()
        await rig.in_worker(
            rig.disk.write_file_atomically, f"{DATA_DIR}/log-start-offset-checkpoint", b"0\n1\norders 0 9\n"
        )
        log = await rig.open()
        assert (log.log_start_offset, log.log_end_offset) == (9, 9)
        await rig.checkpoint()
        await rig.die()
        log = await rig.open()
        assert (log.log_start_offset, log.log_end_offset) == (9, 9)
        assert (await rig.append(log, make_batch(), flush=True)).base_offset == 9

    asyncio.run(run())


async def mend_by_a_start(rig: Rig, log: PartitionLog) -> PartitionLog:
    await rig.close()
    assert len(rig.disk.contents(path(0, ".log"))) > log.size_bytes, "the stop came before the repair"
    return await rig.open()


async def mend_by_the_next_append(rig: Rig, log: PartitionLog) -> PartitionLog:
    await log.make_room(100, NOW_MS, NOW_MS)
    return log


@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.parametrize("mend", [mend_by_a_start, mend_by_the_next_append])
def test_the_half_written_end_of_a_failed_write_never_comes_back(
    mend: Callable[[Rig, PartitionLog], Awaitable[PartitionLog]], is_checkpointed: bool
) -> None:
    async def run(seed: int) -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(mark=1), flush=True)
        rig.disk.faults.fail_next_write(path(0, ".log"), after_bytes=50)
        with pytest.raises(StorageFailed):
            await rig.append(log, make_batch(mark=2))
        log = await mend(rig, log)
        await log.roll()
        await rig.append(log, make_batch(mark=3), flush=True)
        if is_checkpointed:
            await rig.checkpoint()
        await rig.tasks.cancel_all()
        rig.disk.power_cut(random.Random(seed))
        log = await Rig(rig.disk).open()
        assert [batch.base_offset for batch in await read_all(log)] == [0, 1]
        assert len(rig.disk.contents(path(0, ".log"))) == log.segments[1].size_bytes

    for seed in range(60):  # of what a power cut keeps
        asyncio.run(run(seed))
