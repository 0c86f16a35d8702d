"""What a producer has taken and not yet delivered: batches by partition, and the memory that they may use. No I/O.

An ``Outgoing`` batch grows while it waits, is closed when it is first sent, and ends with an outcome: an offset, an
error, or (too large for the broker) two halves that go on in its place. Its records' ``Delivery`` objects share that
outcome: no future per record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from typing import Any, NamedTuple

from headpond.client.errors import ClientError, RefusedInCompany
from headpond.model import TopicPartition
from headpond.protocol.records.builder import assemble, encode_record
from headpond.protocol.records.compression import compress
from headpond.protocol.records.header import HEADER_BYTES, NO_LEADER_EPOCH
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Header
from headpond.protocol.records.record import Record as StoredRecord

RECORD_OVERHEAD_BYTES_MAX = 36
"""What a record takes beside its key, value and headers: its length, attributes, two deltas, three lengths."""
HEADER_OVERHEAD_BYTES_MAX = 10
SEQUENCE_MASK = 0x7FFF_FFFF
EPOCH_MAX = 32_766


class Record(NamedTuple):
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    """None: the time at which it is sent."""


class RecordPlace(NamedTuple):
    topic: str
    partition: int
    offset: int
    """-1: not known (acks 0, or an answer that only says that the record was there already)."""
    timestamp_ms: int


def size_bytes_max(record: Record) -> int:
    """The most that a record takes in a batch."""
    size = RECORD_OVERHEAD_BYTES_MAX + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += HEADER_OVERHEAD_BYTES_MAX + 4 * len(name) + len(value or b"")
    return size


class Identity(NamedTuple):
    """Who writes into a partition, for the broker to tell duplicates by."""

    producer_id: int
    epoch: int
    next_sequence: int


NOBODY = Identity(-1, -1, -1)


class Outgoing:
    """One batch from its first record to its outcome."""

    is_divisible = True
    """Whether ``split`` helps when the broker finds it too large."""

    __slots__ = (
        "_base_timestamp",
        "_codec",
        "_encoded",
        "_max_timestamp",
        "_payload",
        "append_time_ms",
        "base_offset",
        "count",
        "created_at_s",
        "done",
        "error",
        "halves",
        "is_closed",
        "is_outcome_unknown",
        "last_error",
        "memory_bytes",
        "record_errors",
        "size_bytes",
        "timestamps",
        "tp",
    )

    def __init__(self, tp: TopicPartition, created_at_s: float, codec: int, level: int | None) -> None:
        self.tp = tp
        self.created_at_s = created_at_s
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_closed = False
        self.is_outcome_unknown = False
        """An attempt may have been carried out: nobody said."""
        self.last_error: ClientError | None = None
        """Why it was not delivered the last time it was tried."""
        self.count = 0
        self.size_bytes = HEADER_BYTES
        self.memory_bytes = 0
        self.timestamps: list[int] = []
        self.base_offset = -1
        self.append_time_ms = -1
        self.error: ClientError | None = None
        self.record_errors: dict[int, str] = {}
        self.halves: tuple[Outgoing, ...] = ()
        self._codec = (codec, level)
        self._encoded: list[bytes] = []
        self._payload: bytes | None = None
        self._base_timestamp = self._max_timestamp = 0

    def append(self, record: Record, timestamp_ms: int, memory_bytes: int) -> Delivery:
        base_timestamp = self._base_timestamp if self.count else timestamp_ms
        stored = StoredRecord(self.count, timestamp_ms, record.key, record.value, record.headers)
        encoded = encode_record(stored, 0, base_timestamp)  # raises before anything changes
        self._base_timestamp = base_timestamp
        self._max_timestamp = max(self._max_timestamp, timestamp_ms) if self.count else timestamp_ms
        self._encoded.append(encoded)
        self.timestamps.append(timestamp_ms)
        self.size_bytes += len(encoded)
        self.memory_bytes += memory_bytes
        self.count += 1
        return Delivery(self, self.count - 1)

    def encode(self, identity: Identity) -> bytearray:
        """The bytes to send; closes the batch. The records are compressed once, however often it is sent."""
        self.is_closed = True
        codec, level = self._codec
        if self._payload is None:
            self._payload = compress(codec, b"".join(self._encoded), level)
            self._encoded.clear()
        return assemble(
            self._payload,
            base_offset=0,
            leader_epoch=NO_LEADER_EPOCH,
            attributes=codec,
            last_offset_delta=self.count - 1,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=identity.next_sequence,
            count=self.count,
        )

    def split(self) -> tuple[Outgoing, ...]:
        """Two batches with half of the records each, which take this one's place."""
        codec, level = self._codec
        records = list(read_records(self.encode(NOBODY)))
        middle = len(records) // 2
        memory_bytes = self.memory_bytes // len(records)
        for part in (records[:middle], records[middle:]):
            half = Outgoing(self.tp, self.created_at_s, codec, level)
            for stored in part:
                half.append(Record(stored.key, stored.value, stored.headers), stored.timestamp, memory_bytes)
            half.is_closed = True
            self.halves += (half,)
        self.halves[0].memory_bytes += self.memory_bytes - sum(half.memory_bytes for half in self.halves)
        self.done.set_result(None)
        return self.halves

    def succeeded(self, base_offset: int, append_time_ms: int) -> None:
        self.base_offset, self.append_time_ms = base_offset, append_time_ms
        self._finish()

    def failed(self, error: ClientError, record_errors: dict[int, str] | None = None) -> None:
        self.error, self.record_errors = error, record_errors or {}
        self._finish()

    def _finish(self) -> None:
        self._payload = None
        self._encoded.clear()
        if not self.done.done():
            self.done.set_result(None)


class Delivery:
    """Awaiting it gives the record's ``RecordPlace``, or raises why it has none. It need not be awaited."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Outgoing, index: int) -> None:
        self._batch = batch
        self._index = index

    def __await__(self) -> Generator[Any, None, RecordPlace]:
        return self._wait().__await__()

    def done(self) -> bool:
        batch, _ = self._find()
        return batch.done.done()

    def result(self) -> RecordPlace:
        """Once it is done."""
        batch, index = self._find()
        if batch.error is not None:
            raise _error_of_record(batch, batch.error, index)
        timestamp_ms = batch.append_time_ms if batch.append_time_ms >= 0 else batch.timestamps[index]
        offset = batch.base_offset + index if batch.base_offset >= 0 else -1
        return RecordPlace(batch.tp.topic, batch.tp.partition, offset, timestamp_ms)

    async def _wait(self) -> RecordPlace:
        while not self.done():
            batch, _ = self._find()
            await asyncio.wait((batch.done,))  # not the future itself: who stops waiting must not cancel it for others
        return self.result()

    def _find(self) -> tuple[Outgoing, int]:
        batch, index = self._batch, self._index
        while batch.halves:
            first, second = batch.halves
            batch, index = (first, index) if index < first.count else (second, index - first.count)
        return batch, index


def _error_of_record(batch: Outgoing, error: ClientError, index: int) -> ClientError:
    """The broker may say which records it minds (KIP-467): the others failed only for being in their company."""
    if not batch.record_errors:
        return ClientError(error.code, error.message)
    if index in batch.record_errors:
        return ClientError(error.code, f"{batch.tp}: {batch.record_errors[index] or error.message}")
    return RefusedInCompany(f"{batch.tp}: not written, because the broker refused another record of the same batch")


class PartitionQueue:
    """The batches of one partition in order. Only the first is ever on its way: so nothing can overtake it, however
    often it has to be sent again, and a refused batch leaves its sequence numbers to the next."""

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.batches: deque[Outgoing] = deque()
        self.identity: Identity | None = None
        self.is_in_flight = False
        self.retry_at_s = 0.0

    def head_succeeded(self) -> Outgoing:
        batch = self.batches.popleft()
        if self.identity is not None and self.identity is not NOBODY:
            sequence = (self.identity.next_sequence + batch.count) & SEQUENCE_MASK
            self.identity = self.identity._replace(next_sequence=sequence)
        return batch

    def head_failed(self) -> Outgoing:
        batch = self.batches.popleft()
        if batch.is_outcome_unknown:
            self.change_identity()
        return batch

    def change_identity(self) -> None:
        """Start anew in the next epoch: which sequence the broker expects is not known any more. A request of the old
        epoch that is still under way is refused from the new epoch's first batch on, so it can't come in between."""
        if self.identity is None or self.identity is NOBODY:
            return
        epoch = self.identity.epoch + 1
        self.identity = Identity(self.identity.producer_id, epoch, 0) if epoch <= EPOCH_MAX else None


class Memory:
    """So many bytes and no more; who does not fit waits for its turn."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.used_bytes = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    @property
    def has_waiters(self) -> bool:
        return bool(self._waiting)

    def try_take(self, size_bytes: int) -> bool:
        if self._waiting or not self._fits(size_bytes):
            return False
        self.used_bytes += size_bytes
        return True

    def queue_up(self, size_bytes: int) -> asyncio.Future[None]:
        """A future that is done when the bytes are taken. Give it to ``give_up`` to stop waiting."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, size_bytes))
        return turn

    def give_up(self, turn: asyncio.Future[None], size_bytes: int) -> None:
        if turn.done() and not turn.cancelled():
            self.release(size_bytes)
        else:
            turn.cancel()
            self._serve()

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        self._serve()

    def _fits(self, size_bytes: int) -> bool:
        return self.used_bytes + size_bytes <= self._limit_bytes or self.used_bytes == 0

    def _serve(self) -> None:
        while self._waiting and (self._waiting[0][0].done() or self._fits(self._waiting[0][1])):
            turn, size_bytes = self._waiting.popleft()
            if not turn.done():
                self.used_bytes += size_bytes
                turn.set_result(None)
