"""Runs a scenario once on a simulated disk, then recovers from every disk that a kill or a power cut during it may have
left. What is looked at first after the start (batches, timestamps, retention) differs from disk to disk.

A scenario notes its promises as marks: ``Promise(batches, least)`` says that from now on the log holds a prefix of
``batches`` with at least ``least`` of them. While a change is under way the promise has to allow for both of its ends.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from headpond.config.log import LogConfig
from headpond.storage.log.log import PartitionLog
from simulation.harness.crashes import CrashState
from simulation.harness.disk import SimulatedDisk
from support.batches import Batch, split
from unit.storage.storage_rig import CONFIG, NOW_MS, Rig, make_batch, read_all

EVERY_DISK = os.environ.get("HEADPOND_CRASHES") == "all"
SHARE = 4
"""The ordinary run takes one disk in so many, those with all and with none of the pending writes among them."""


def some(count: int) -> int:
    return count if EVERY_DISK else max(count // SHARE, 4)


class Promise(NamedTuple):
    batches: tuple[bytes, ...]
    """What the log holds, oldest first: a prefix of these (a suffix, where the oldest may be deleted)."""
    least: int
    """As many of them are there for sure."""
    removable: int = 0
    """As many of the oldest may be gone."""


class Player:
    """What a scenario writes with: keeps the ghost of the log and notes the promises."""

    def __init__(self, rig: Rig, log: PartitionLog) -> None:
        self.rig = rig
        self.log = log
        self.batches: list[bytes] = []
        self.flushed = 0
        self.removable = 0

    async def append(
        self, *, count: int = 1, flush: bool = True, epoch: int = 0, later_ms: int = 0, **options: int
    ) -> None:
        number = len(self.batches)
        batch = make_batch(count, mark=number + 1, timestamp_ms=NOW_MS + number + later_ms, **options)
        self.batches.append(stamped(batch, self.log.log_end_offset, epoch))
        self.promise()  # it may be found from now on
        await self.rig.append(self.log, batch, epoch=epoch)
        if flush:
            await self.flush()

    async def flush(self) -> None:
        await self.log.flush()
        self.flushed = len(self.batches)
        self.promise()

    def promise(self) -> None:
        self.rig.disk.mark(Promise(tuple(self.batches), self.flushed, self.removable))


def stamped(batch: bytes, base_offset: int, epoch: int) -> bytes:
    return base_offset.to_bytes(8, "big") + batch[8:12] + epoch.to_bytes(4, "big") + batch[16:]


def play(
    scenario: Callable[[Player], Awaitable[None]],
    *,
    config: LogConfig = CONFIG,
    states_per_moment_max: int = 60,
    least_states: int = 100,
) -> int:
    """Returns how many disks were recovered from."""

    async def run() -> int:
        rig = Rig(config=config)
        log = await rig.open()
        player = Player(rig, log)
        player.promise()
        start = len(rig.disk.trace)
        await scenario(player)
        await rig.tasks.cancel_all()
        count = 0
        for state in rig.disk.crash_states(states_per_moment_max=some(states_per_moment_max), first_operation=start):
            await check(rig.disk.after(state), state, config)
            count += 1
        return count

    count = asyncio.run(run())
    assert count >= some(least_states), f"only {count} disks: the scenario did not do what it should"
    return count


async def check(disk: SimulatedDisk, state: CrashState, config: LogConfig) -> None:
    rig = Rig(disk, config=config)
    log = await rig.open()
    try:
        await check_log(rig, log, state)
    except Exception as error:
        raise AssertionError(f"after {state.operations} operations, {state.marks[-1]!r:.300}\n{state.story}") from error
    finally:
        await rig.tasks.cancel_all()


async def check_log(rig: Rig, log: PartitionLog, state: CrashState) -> None:
    promise = [mark for mark in state.marks if isinstance(mark, Promise)][-1]
    for look in list(itertools.permutations((check_batches, check_times, check_retention)))[state.operations % 6]:
        await look(rig, log, promise)
    found = [batch.data for batch in await read_all(log)]
    check_what_batches_tell(log, found)
    appended = await rig.append(log, make_batch(mark=999), epoch=100, flush=True)
    assert appended.base_offset == log.log_end_offset - 1
    await rig.checkpoint()
    # A second power cut right after that: the promise made since holds too.
    again = Rig(SimulatedDisk(rig.disk.durable_image()), config=rig.config)
    reopened = await again.open()
    assert [batch.data for batch in await read_all(reopened)][: len(found)] == found
    assert reopened.log_end_offset == log.log_end_offset
    assert reopened.epochs.entries == log.epochs.entries
    await again.tasks.cancel_all()


async def check_batches(rig: Rig, log: PartitionLog, promise: Promise) -> None:
    found = [batch.data for batch in await read_all(log)]
    assert keeps(promise, found), f"found {len(found)} batches"
    assert log.flushed_end_offset == log.log_end_offset
    assert all(batch.crc_is_right for batch in split(b"".join(found)))
    await check_every_offset(log, found)


async def check_times(rig: Rig, log: PartitionLog, promise: Promise) -> None:
    """D2: a search by time gives what a linear scan gives. The records of a batch all have its timestamp."""
    batches = promised(log, promise)
    for timestamp in sorted({batch.max_timestamp for batch in batches}):
        found = await log.offset_for_timestamp(timestamp, up_to_end_offset=log.log_end_offset)
        first = next(batch for batch in batches if batch.max_timestamp >= timestamp)
        assert found is not None and found.offset == max(first.base_offset, log.log_start_offset)


async def check_retention(rig: Rig, log: PartitionLog, promise: Promise) -> None:
    """D5: a segment that holds one record that is young enough stays, and its age is that of its youngest."""
    batches = promised(log, promise)
    for segment in list(log.segments):
        held = [each.max_timestamp for each in batches if segment.base_offset <= each.base_offset < segment.end_offset]
        if held and log.log_start_offset <= segment.base_offset:
            if segment is log.segments[0]:
                rig.reconfigure(retention_ms=1_000)
                assert await log.delete_old_segments(max(held) + 1_000) == 0
                rig.reconfigure(retention_ms=None)
            await log.reads.load(segment)
            assert segment.max_timestamp == max(held)


def promised(log: PartitionLog, promise: Promise) -> list[Batch]:
    """What the log should hold, by its offsets: of the promised batches those between its start and its end."""
    batches = split(b"".join(promise.batches))
    return [each for each in batches if log.log_start_offset <= each.last_offset < log.log_end_offset]


def check_what_batches_tell(log: PartitionLog, found: list[bytes]) -> None:
    """Epochs and producers are those of the batches that are there, no more and no less."""
    sequences: dict[int, int] = {}
    for batch in split(b"".join(found)):
        assert log.epochs.epoch_for(max(batch.base_offset, log.log_start_offset)) == batch.leader_epoch
        if batch.producer_id >= 0:
            sequences[batch.producer_id] = batch.base_sequence + batch.last_offset_delta
    assert {state.producer_id: state.last_sequence for state in log.producers.states()} == sequences


def keeps(promise: Promise, found: list[bytes]) -> bool:
    for gone in range(promise.removable + 1):
        if list(promise.batches[gone : gone + len(found)]) == found and gone + len(found) >= promise.least:
            return True
    return False


async def check_every_offset(log: PartitionLog, found: list[bytes]) -> None:
    """D2: whatever the index says, a read from any offset gives what a linear scan gives."""
    batches = list(split(b"".join(found)))
    for number, batch in enumerate(batches):
        for offset in {batch.base_offset, batch.last_offset}:
            if offset < log.log_start_offset:
                continue
            read = await log.read_cold(
                offset, up_to_end_offset=log.log_end_offset, size_bytes_max=150, at_least_one_batch=True
            )
            got = [each.data for each in split(bytes(read.data))]
            assert got and got == found[number : number + len(got)]
