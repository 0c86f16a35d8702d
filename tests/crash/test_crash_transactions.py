"""T*: on every disk that a power cut may leave, the aborted and the open transactions are those of the batches that are
there: no abort is forgotten, and none outlives its marker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from crash.crash_play import Player, check_log, some, stamped
from headpond.config.log import LogConfig
from headpond.protocol.records.control import build_end_txn_marker, read_end_txn_marker
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.log.log import PartitionLog
from simulation.harness.crashes import CrashState
from support.batches import Rec, build
from unit.storage.storage_rig import CONFIG, NOW_MS, Rig, read_all

TRANSACTIONAL, CONTROL = 0x10, 0x20
SMALL = msgspec.structs.replace(CONFIG, segment_bytes=300)


class Transactions(Player):
    sequence = 0

    async def data(self, producer_id: int, *, flush: bool = False) -> None:
        batch = build(
            [Rec(b"in a transaction")],
            attributes=TRANSACTIONAL,
            timestamp_ms=NOW_MS + len(self.batches),
            producer_id=producer_id,
            producer_epoch=self.sequence,  # each batch begins anew: sequences are not what this is about
            base_sequence=0,
        )
        self.sequence += 1
        await self._append(batch, flush=flush)

    async def end(self, producer_id: int, *, is_abort: bool, flush: bool = False) -> None:
        marker = build_end_txn_marker(
            producer_id=producer_id,
            producer_epoch=self.sequence,
            is_abort=is_abort,
            coordinator_epoch=0,
            timestamp=NOW_MS + len(self.batches),
        )
        await self._append(bytes(marker), flush=flush)

    async def _append(self, batch: bytes, *, flush: bool) -> None:
        self.batches.append(stamped(batch, self.log.log_end_offset, 0))
        self.promise()
        await self.rig.append(self.log, batch)
        if flush:
            await self.flush()


def play(
    scenario: Callable[[Transactions], Awaitable[None]], *, config: LogConfig = CONFIG, least_states: int = 60
) -> None:
    async def run() -> None:
        rig = Rig(config=config)
        player = Transactions(rig, await rig.open())
        player.promise()
        start = len(rig.disk.trace)
        await scenario(player)
        await rig.tasks.cancel_all()
        count = 0
        for state in rig.disk.crash_states(states_per_moment_max=some(40), first_operation=start):
            after = Rig(rig.disk.after(state), config=config)
            try:
                await check(after, await after.open(), state)
            except Exception as error:
                raise AssertionError(f"after {state.operations} operations\n{state.story}") from error
            finally:
                await after.tasks.cancel_all()
            count += 1
        assert count >= some(least_states), f"only {count} disks"

    asyncio.run(run())


async def check(rig: Rig, log: PartitionLog, state: CrashState) -> None:
    await check_transactions(log)
    await check_log(rig, log, state)
    await check_transactions(log)


async def check_transactions(log: PartitionLog) -> None:
    open_since: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    for batch in await read_all(log):
        if not batch.attributes & CONTROL:
            if batch.attributes & TRANSACTIONAL:
                open_since.setdefault(batch.producer_id, batch.base_offset)
            continue
        marker = read_end_txn_marker(batch.data)
        first_offset = open_since.pop(batch.producer_id, None)
        if marker is not None and marker.is_abort and first_offset is not None:
            aborted.append((batch.producer_id, first_offset, batch.base_offset))
    assert [each[:3] for each in log.aborted] == aborted
    log.producers.on_high_watermark(log.log_end_offset)
    assert log.producers.first_unstable_offset == min(open_since.values(), default=None)


def test_transactions_that_end_and_one_that_does_not_with_checkpoints_in_between() -> None:
    async def scenario(player: Transactions) -> None:
        await player.data(7)
        await player.end(7, is_abort=True, flush=True)
        await player.rig.checkpoint()
        await player.data(8)
        await player.data(9, flush=True)
        await player.end(8, is_abort=True)
        log_checkpoint.take_snapshot(player.log)
        await player.rig.checkpoint()
        await player.data(7, flush=True)
        await player.end(7, is_abort=False, flush=True)
        await player.rig.checkpoint()

    play(scenario)


def test_transactions_over_several_segments() -> None:
    async def scenario(player: Transactions) -> None:
        for number in range(5):
            await player.data(7)
            await player.data(8, flush=number % 2 == 0)
            await player.end(7, is_abort=number % 2 == 0)
            if number % 2:
                await player.rig.checkpoint()
                player.flushed = len(player.batches)
                player.promise()

    play(scenario, config=SMALL)


def test_a_truncation_and_the_other_outcome_behind_it() -> None:
    async def scenario(player: Transactions) -> None:
        await player.data(7)
        await player.end(7, is_abort=True)
        await player.data(8)
        await player.end(8, is_abort=True, flush=True)
        log_checkpoint.take_snapshot(player.log)
        await player.rig.checkpoint()
        player.flushed = 3
        player.promise()
        await player.log.truncate_to(3)
        del player.batches[3:]
        player.promise()
        await player.end(8, is_abort=False, flush=True)
        await player.data(9, flush=True)
        await player.rig.checkpoint()

    play(scenario)
