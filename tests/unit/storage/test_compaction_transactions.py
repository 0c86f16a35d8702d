"""Compaction and transactions: open ones are not touched, markers stay as long as anybody may need them, not longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from headpond.protocol.records.control import build_end_txn_marker
from headpond.storage.log.log import PartitionLog
from headpond.storage.producers.txn_index import AbortedTxn, decode_prefix
from unit.storage.compaction_rig import COMPACTED, batches_of, compact, compacted_log, kept, keyed
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TP, Rig

HORIZON_MS = COMPACTED.delete_retention_ms


class Writer:
    def __init__(self, rig: Rig, log: PartitionLog) -> None:
        self.rig, self.log = rig, log
        self.epochs: dict[int, int] = {}

    async def data(self, producer_id: int, *pairs: tuple[str, str | None]) -> None:
        """As a producer of transactions v2: an epoch for each transaction."""
        epoch = self.epochs.setdefault(producer_id, 0)
        options = {"attributes": 0x10, "producer_id": producer_id, "producer_epoch": epoch, "base_sequence": 0}
        await self.rig.append(self.log, keyed(*pairs, **options))

    async def end(self, producer_id: int, *, is_abort: bool) -> None:
        self.epochs[producer_id] = epoch = self.epochs.get(producer_id, 0) + 1
        marker = build_end_txn_marker(
            producer_id=producer_id, producer_epoch=epoch, is_abort=is_abort, coordinator_epoch=1, timestamp=NOW_MS
        )
        await self.rig.append(self.log, bytes(marker), flush=True)
        self.log.producers.on_high_watermark(self.log.log_end_offset)

    async def plain(self, *pairs: tuple[str, str | None]) -> None:
        await self.rig.append(self.log, keyed(*pairs), flush=True)

    async def markers(self) -> list[int]:
        """Offsets of the markers that are still there, with their record."""
        return [b.base_offset for b in await batches_of(self.log) if b.attributes & 0x20 and b.count]

    async def values(self) -> list[bytes | None]:
        controls = set(await self.markers())
        return [each.value for each in await kept(self.log) if each.offset not in controls]

    async def compact_again(self, number: int) -> None:
        """A cleaning needs something dirty."""
        await self.plain((f"round {number}", "x"))
        await compact(self.rig, self.log)


def run(test: Callable[[Rig, Writer], Awaitable[None]]) -> None:
    async def start() -> None:
        rig, log = await compacted_log()
        await test(rig, Writer(rig, log))
        await rig.tasks.cancel_all()

    asyncio.run(start())


def test_nothing_of_an_open_transaction_goes_nor_does_it_hide_what_it_may_not_replace() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.plain(("a", "old"))
        await writer.data(5, ("a", "1"))
        await writer.data(5, ("a", "2"))
        await writer.plain(("a", "newer"))
        await compact(rig, writer.log)
        assert await writer.values() == [b"old", b"1", b"2", b"newer"]
        await writer.end(5, is_abort=False)
        await compact(rig, writer.log)
        assert await writer.values() == [b"newer"]

    run(test)


def test_the_marker_of_a_commit_stays_with_its_records() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.data(5, ("a", "1"))
        await writer.end(5, is_abort=False)
        for number in range(3):
            rig.clock.advance(HORIZON_MS / 1000 + 1)
            await writer.compact_again(number)
        assert await writer.markers() == [1]
        assert (await writer.values())[0] == b"1"

    run(test)


def test_a_marker_goes_some_time_after_the_last_record_of_its_transaction() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.data(5, ("a", "1"))
        await writer.end(5, is_abort=False)  # at 1
        await writer.data(5, ("a", "2"))
        await writer.end(5, is_abort=False)  # at 3
        await compact(rig, writer.log)  # takes the first record
        assert await writer.markers() == [1, 3]
        await writer.compact_again(1)  # notices that the first transaction has nothing left: its time begins
        assert await writer.markers() == [1, 3]
        rig.clock.advance(HORIZON_MS / 1000 - 1)
        await writer.compact_again(2)
        assert await writer.markers() == [1, 3]
        rig.clock.advance(2)
        await writer.compact_again(3)
        assert await writer.markers() == [3]

    run(test)


def test_an_abort_leaves_the_index_together_with_its_marker() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.data(5, ("a", "aborted"))
        await writer.end(5, is_abort=True)  # at 1
        await writer.data(5, ("b", "kept"))
        await writer.end(5, is_abort=False)
        assert writer.log.aborted == [AbortedTxn(5, 0, 1, 2)]
        await compact(rig, writer.log)
        await writer.compact_again(1)
        assert await writer.markers() == [1, 3] and writer.log.aborted == [AbortedTxn(5, 0, 1, 2)]
        path = f"{DATA_DIR}/{TP}/{0:020d}.txnindex"
        assert decode_prefix(await rig.in_worker(rig.disk.read_file, path)) == writer.log.aborted
        rig.clock.advance(HORIZON_MS / 1000 + 1)
        await writer.compact_again(2)
        assert await writer.markers() == [3] and writer.log.aborted == []
        assert not await rig.in_worker(rig.disk.exists, path)
        await rig.die()
        writer.log = await rig.open()
        assert writer.log.aborted == [] and (await writer.values())[0] == b"kept"
        writer.log.producers.on_high_watermark(writer.log.log_end_offset)
        assert writer.log.producers.first_unstable_offset is None

    run(test)


def test_the_epoch_of_a_producers_last_marker_is_not_forgotten() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.data(5, ("a", "1"))
        await writer.end(5, is_abort=True)
        for number in range(3):
            rig.clock.advance(HORIZON_MS / 1000 + 1)
            await writer.compact_again(number)
        assert [b.base_offset for b in await batches_of(writer.log)][:1] == [1]
        state = writer.log.producers.get(5)
        assert state is not None and state.epoch == 1

    run(test)
