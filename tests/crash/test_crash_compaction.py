"""A power cut at any moment of a compaction: each key keeps its latest value, at its offset, and deleted keys stay so.

Each disk is recovered, read from end to end, compacted once more and cut off from power again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from crash.crash_play import some
from headpond.config.log import LogConfig
from headpond.protocol.records.control import build_end_txn_marker
from headpond.storage.log.log import PartitionLog
from simulation.harness.clock import ManualClock
from simulation.harness.crashes import CrashState
from simulation.harness.disk import SimulatedDisk
from simulation.harness.processes import SimulatedProcesses
from unit.storage.compaction_rig import BY_HAND, COMPACTED, Kept, batches_of, compact, compactor_of, kept, keyed, table
from unit.storage.storage_rig import NOW_MS, Rig


class Ghost:
    """What was appended and flushed, whatever compaction makes of it."""

    def __init__(self, rig: Rig, log: PartitionLog) -> None:
        self.rig = rig
        self.log = log
        self.appended: list[Kept] = []

    async def append(self, *pairs: tuple[str, str | None], **options: int) -> None:
        now_ms, first = self.rig.clock.now_ms(), self.log.log_end_offset
        for delta, (key, value) in enumerate(pairs):
            self.appended.append(
                Kept(first + delta, key.encode(), value.encode() if value is not None else None, now_ms)
            )
        await self.rig.append(self.log, keyed(*pairs, timestamp_ms=now_ms, **options), flush=True)


def play(
    prepare: Callable[[Ghost], Awaitable[None]],
    change: Callable[[Ghost], Awaitable[None]],
    *,
    config: LogConfig = COMPACTED,
    least_states: int = 100,
    states_per_moment_max: int = 60,
) -> None:
    """``prepare``, then a power cut at every moment of ``change``."""

    async def run() -> int:
        rig = Rig(config=config, storage=BY_HAND)
        ghost = Ghost(rig, await rig.open())
        await prepare(ghost)
        await rig.checkpoint()
        start = len(rig.disk.trace)
        expected = list(ghost.appended)
        await change(ghost)
        assert table(await kept(ghost.log)) == table(ghost.appended)
        await rig.tasks.cancel_all()
        count = 0
        for state in rig.disk.crash_states(states_per_moment_max=some(states_per_moment_max), first_operation=start):
            await check(rig, rig.disk.after(state), state, expected, ghost.appended)
            count += 1
        return count

    count = asyncio.run(run())
    assert count >= some(least_states), f"only {count} disks: the scenario did not do what it should"


async def check(former: Rig, disk: SimulatedDisk, state: CrashState, least: list[Kept], most: list[Kept]) -> None:
    rig = Rig(disk, config=former.config, storage=BY_HAND, clock=ManualClock(former.clock.now_ms()))
    try:
        log = await rig.open()
        await check_log(log, least, most)
        assert not [name for name in await rig.files(log.path) if name.endswith((".cleaned", ".swap"))]
        await compact(rig, log)
        await check_log(log, least, most)
        durable = SimulatedDisk(disk.durable_image())
        again = Rig(durable, config=former.config, storage=BY_HAND, clock=ManualClock(rig.clock.now_ms()))
        await check_log(await again.open(), least, most)
        await again.tasks.cancel_all()
    except Exception as error:
        raise AssertionError(f"after {state.operations} operations: {state.story}") from error
    finally:
        await rig.tasks.cancel_all()


async def check_log(log: PartitionLog, least: list[Kept], most: list[Kept]) -> None:
    found = await kept(log)
    end_offset = log.log_end_offset
    assert least[-1].offset < end_offset <= most[-1].offset + 1
    offsets = [each.offset for each in found]
    assert offsets == sorted(set(offsets))
    assert not set(found) - set(most), "a record was changed"
    assert table(found) == table([each for each in most if each.offset < end_offset])
    await check_every_offset(log)


async def check_every_offset(log: PartitionLog) -> None:
    """Whatever the index says, a read from any offset gives the first batch that reaches it."""
    batches = await batches_of(log)
    for offset in range(log.log_start_offset, log.log_end_offset):
        read = await log.read_cold(
            offset, up_to_end_offset=log.log_end_offset, size_bytes_max=1, at_least_one_batch=True
        )
        expected = next((batch.data for batch in batches if batch.last_offset >= offset), b"")
        assert bytes(read.data) == expected


async def three_segments(ghost: Ghost) -> None:
    for number in range(3):
        await ghost.append(("a", str(number)), (f"own-{number}", "x"))
        await ghost.append(("b", str(number) * 10))
        await ghost.log.roll()
    await ghost.append(("b", "active"))


async def clean(ghost: Ghost) -> None:
    while await compactor_of(ghost.rig).clean_dirtiest():
        pass


def test_segments_are_merged_into_one() -> None:
    async def change(ghost: Ghost) -> None:
        await clean(ghost)
        assert ghost.log.segments.base_offsets == [0, 9]

    play(three_segments, change, config=msgspec.structs.replace(COMPACTED, segment_bytes=2_000))


def test_segments_are_cleaned_one_by_one() -> None:
    async def change(ghost: Ghost) -> None:
        await clean(ghost)
        assert len(ghost.log.segments) == 4

    play(three_segments, change, config=msgspec.structs.replace(COMPACTED, segment_bytes=250))


def test_appends_and_rolls_go_on_between_two_cleanings() -> None:
    async def change(ghost: Ghost) -> None:
        await clean(ghost)
        await ghost.append(("a", "late"), ("c", "late"))
        await ghost.log.roll()
        await ghost.append(("d", "later"))
        await ghost.rig.checkpoint()
        await clean(ghost)

    play(three_segments, change, states_per_moment_max=30)


def test_tombstones_go_after_what_they_delete_and_never_before() -> None:
    async def prepare(ghost: Ghost) -> None:
        await ghost.append(("a", "1"), ("b", "1"))
        await ghost.log.roll()
        await ghost.append(("a", None), ("c", "1"))
        await ghost.log.roll()
        await ghost.append(("b", "2"))

    async def change(ghost: Ghost) -> None:
        await clean(ghost)
        ghost.rig.clock.advance(11)  # the tombstone's time is over
        await ghost.append(("c", "2"))
        await ghost.log.roll()
        await ghost.append(("d", "1"))
        await ghost.rig.checkpoint()
        await clean(ghost)
        assert b"a" not in [each.key for each in await kept(ghost.log)]

    play(prepare, change, config=msgspec.structs.replace(COMPACTED, segment_bytes=160), states_per_moment_max=30)


def test_a_worker_process_that_dies_leaves_nothing_behind() -> None:
    async def change(ghost: Ghost) -> None:
        for steps in range(3):
            processes = ghost.rig.processes
            assert isinstance(processes, SimulatedProcesses)
            processes.steps_until_death = steps
            await compactor_of(ghost.rig).clean_dirtiest()
            compactor_of(ghost.rig)._losses.clear()
        assert not [name for name in await ghost.rig.files(ghost.log.path) if name.endswith(".cleaned")]
        await clean(ghost)

    play(three_segments, change, config=msgspec.structs.replace(COMPACTED, segment_bytes=250), states_per_moment_max=30)


def test_a_power_cut_during_the_recovery_from_a_power_cut() -> None:
    async def run() -> None:
        config = msgspec.structs.replace(COMPACTED, segment_bytes=2_000)
        rig = Rig(config=config, storage=BY_HAND)
        ghost = Ghost(rig, await rig.open())
        await three_segments(ghost)
        await rig.checkpoint()
        start = len(rig.disk.trace)
        await clean(ghost)
        await rig.tasks.cancel_all()
        count = 0
        for state in rig.disk.crash_states(states_per_moment_max=some(6), first_operation=start):
            disk = rig.disk.after(state)
            if not any(".swap" in name for folder in state.image.directories.values() for name in folder):
                continue  # there is nothing to be finished
            second = Rig(disk, config=config, storage=BY_HAND)
            await second.open()
            await second.tasks.cancel_all()
            for deeper in disk.crash_states(states_per_moment_max=some(30)):
                await check(rig, disk.after(deeper), deeper, ghost.appended, ghost.appended)
                count += 1
        assert count > some(300)

    asyncio.run(run())


@pytest.mark.parametrize("segment_bytes", [250, 2_000])
def test_aborted_transactions_stay_known(segment_bytes: int) -> None:
    """Without its entry in the transaction index an aborted record that still lies there would be read as committed."""

    async def run() -> None:
        config = msgspec.structs.replace(COMPACTED, segment_bytes=segment_bytes)
        rig = Rig(config=config, storage=BY_HAND)
        log = await rig.open()
        for number in range(3):
            await rig.append(log, keyed(("a", str(number)), (f"own-{number}", "x")))
            place = {"attributes": 0x10, "producer_id": 5 + number, "producer_epoch": 0, "base_sequence": 0}
            await rig.append(log, keyed(("b", "aborted"), **place))
            await rig.append(log, abort_marker(producer_id=5 + number))
            await log.roll()
        await rig.append(log, keyed(("b", "active")), flush=True)
        log.producers.on_high_watermark(log.log_end_offset)
        await rig.checkpoint()
        known = [each[:3] for each in log.aborted]
        assert len(known) == 3
        start = len(rig.disk.trace)
        while await compactor_of(rig).clean_dirtiest():
            pass
        assert [each[:3] for each in log.aborted] == known
        await rig.tasks.cancel_all()
        count = 0
        for state in rig.disk.crash_states(states_per_moment_max=some(30), first_operation=start):
            disk = rig.disk.after(state)
            second = Rig(disk, config=config, storage=BY_HAND)
            assert [each[:3] for each in (await second.open()).aborted] == known, state.story
            await second.tasks.cancel_all()
            if any(".swap" in name for folder in state.image.directories.values() for name in folder):
                for deeper in disk.crash_states(states_per_moment_max=some(4)):
                    third = Rig(disk.after(deeper), config=config, storage=BY_HAND)
                    assert [each[:3] for each in (await third.open()).aborted] == known, (state.story, deeper.story)
                    await third.tasks.cancel_all()
            count += 1
        assert count > some(100)

    asyncio.run(run())


def abort_marker(*, producer_id: int) -> bytes:
    return bytes(
        build_end_txn_marker(
            producer_id=producer_id, producer_epoch=0, is_abort=True, coordinator_epoch=1, timestamp=NOW_MS
        )
    )
