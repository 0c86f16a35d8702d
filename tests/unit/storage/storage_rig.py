"""A data folder on a simulated disk, and batches for it: what the storage tests share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from headpond.config.log import LogConfig
from headpond.model import TopicId, TopicPartition
from headpond.ports import Syncer, Workers
from headpond.protocol.records.header import BatchHeader, read_header
from headpond.replication.deadlines import Deadlines
from headpond.replication.partition import Partition
from headpond.runtime.tasks import LoopTasks
from headpond.storage.log.log import Appended, PartitionLog
from headpond.storage.log.lookup import Read
from headpond.storage.manager import LogManager, StorageConfig
from headpond.storage.ports import StoragePorts
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import ManualClock
from simulation.harness.disk import SimulatedDisk
from simulation.harness.processes import SimulatedProcesses
from simulation.harness.workers import SimulatedWorkers
from support.batches import Batch, Rec, build, split

T = TypeVar("T")
DATA_DIR = "/data"
TP = TopicPartition("orders", 0)
TOPIC_ID = TopicId(bytes(range(16)))
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=1_000, index_interval_bytes=100, retention_ms=None, file_delete_delay_ms=1_000)


class Rig:
    """Opens managers on one disk, one after the other: a restart is ``open`` again. Needs a running loop."""

    has_journal = False
    """Always in use, however few logs there are."""

    def __init__(
        self,
        disk: SimulatedDisk | None = None,
        *,
        config: LogConfig = CONFIG,
        storage: StorageConfig | None = None,
        known: Mapping[TopicPartition, TopicId] | None = None,
        clock: ManualClock | None = None,
        syncer: Syncer | None = None,
        lookers: Workers | None = None,
    ) -> None:
        self.syncer = syncer
        self.lookers = lookers
        self.disk = disk or SimulatedDisk(now_ms=lambda: NOW_MS)
        self.clock = clock or ManualClock(NOW_MS)
        self.tasks = LoopTasks()
        self.config = config
        self.storage = storage or StorageConfig(recovery_threads=1)
        self.known = dict(known) if known is not None else {TP: TOPIC_ID}
        self.fatal: list[BaseException] = []
        self.processes = SimulatedProcesses(self.disk, self.clock)
        self.manager = self._manager()

    def _manager(self) -> LogManager:
        ports = StoragePorts(
            fs=self.disk,
            clock=self.clock,
            workers=SimulatedWorkers(self.clock),
            tasks=self.tasks,
            random=SeededRandom(),
            processes=self.processes,
            syncer=self.syncer,
            lookers=self.lookers,
        )
        return LogManager(DATA_DIR, ports, self.storage, self.fatal.append)

    async def open(self) -> PartitionLog:
        """Start the broker's storage; returns the log of the first known partition."""
        self.manager = self._manager()
        await self.manager.open(self.known, lambda _: self.config, "cluster-1", 1)
        if self.has_journal:
            await self.use_journal()
        log = self.manager.get(next(iter(self.known)))
        assert log is not None
        return log

    def partition(self, log: PartitionLog, *, follows_flush: bool = True) -> Partition:
        """The partition of that log, as the broker makes it."""
        return Partition(log, self.manager.commits, Deadlines(self.clock), follows_flush=follows_flush)

    async def use_journal(self) -> None:
        self.manager.journal.many_logs = 0
        while not self.manager.journal.is_on:  # the first time its files are made
            self.manager.journal.turn_on()
            await asyncio.sleep(0)

    async def close(self) -> None:
        await self.tasks.cancel_all()
        await self.manager.close()
        self.tasks = LoopTasks()

    async def die(self) -> None:
        """kill -9: what was written stays, nothing is tidied up."""
        await self.tasks.cancel_all()
        self.tasks = LoopTasks()
        self.disk.kill()

    async def checkpoint(self) -> None:
        await self.manager._rounds.round()

    async def files(self, path: str = DATA_DIR) -> list[str]:
        return await SimulatedWorkers(self.clock).run(self.disk.list_dir, path)

    async def in_worker(self, function: Callable[..., T], *arguments: object) -> T:
        return await SimulatedWorkers(self.clock).run(function, *arguments)

    def reconfigure(self, **changes: object) -> None:
        self.config = msgspec.structs.replace(self.config, **changes)
        for log in self.manager.all():
            log.reconfigure(self.config)

    async def append(self, log: PartitionLog, batch: bytes, *, epoch: int = 0, flush: bool = False) -> Appended:
        """As the broker does it: make room, append, and flush if told so."""
        data, header = writable(batch)
        while not log.can_append(len(data), header.max_timestamp, self.clock.now_ms()):
            await log.make_room(len(data), header.max_timestamp, self.clock.now_ms())
        appended = log.append(data, header, leader_epoch=epoch, now_ms=self.clock.now_ms())
        self.manager.commits.mark_dirty(log)
        if flush:
            await log.flush()
        return appended


def writable(batch: bytes) -> tuple[memoryview, BatchHeader]:
    return memoryview(bytearray(batch)), read_header(batch)


def make_batch(
    count: int = 1,
    *,
    value_bytes: int = 20,
    timestamp_ms: int = NOW_MS,
    mark: int = 0,
    producer_id: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """``count`` records of the same size; ``mark`` tells batches apart."""
    value = mark.to_bytes(4, "big") * (value_bytes // 4 + 1)
    return build(
        [Rec(value[:value_bytes])] * count,
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=base_sequence,
    )


async def fill(rig: Rig, log: PartitionLog, batches: int, *, count: int = 2) -> None:
    """So many batches of ``count`` records, a millisecond apart, in epoch 3."""
    for number in range(batches):
        await rig.append(log, make_batch(count, mark=number, timestamp_ms=NOW_MS + number), epoch=3)


def read_now(log: PartitionLog, from_offset: int, **limits: Any) -> Read | None:
    """What a fetch gets at once; None: it has to wait for the device."""
    planned = log.plan(from_offset, **limits)
    if planned is None:
        return None
    if planned.size_bytes == 0:
        return Read(b"", from_offset)
    data = planned.read_nowait()
    return None if data is None else Read(data, planned.next_offset)


async def read_all(log: PartitionLog, *, from_offset: int | None = None, size_bytes_max: int = 1 << 20) -> list[Batch]:
    """Every batch of the log, read from ``from_offset`` (default: its start) to its end."""
    offset = log.log_start_offset if from_offset is None else from_offset
    batches: list[Batch] = []
    while offset < log.log_end_offset:
        read = read_now(
            log, offset, up_to_end_offset=log.log_end_offset, size_bytes_max=size_bytes_max, at_least_one_batch=True
        )
        if read is None:
            read = await log.read_cold(
                offset, up_to_end_offset=log.log_end_offset, size_bytes_max=size_bytes_max, at_least_one_batch=True
            )
        assert read.data, f"no progress at {offset}"
        batches += split(bytes(read.data))
        assert read.next_offset > offset
        offset = read.next_offset
    return batches
