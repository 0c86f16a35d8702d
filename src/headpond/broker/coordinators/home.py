"""Where coordinators keep their records: the partitions of an internal topic that this broker leads.

Appends go the way of everybody's (leadership, one write, group commit) and are committed when the high watermark has
passed them; REQUEST_TIMED_OUT when that takes too long (outcome unknown: they may commit later). Reading back goes from
the log's start to its end in pieces, through workers where the disk is needed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice

from headpond.broker.replicas.replicas import Replica, Replicas
from headpond.coordination.home import Ended, KeyValue, Producer, Stored
from headpond.model import BrokerError, ErrorCode, NotLeader, StorageFailed, TopicPartition
from headpond.model.waits import Waiter
from headpond.ports import Buffer, Clock
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.control import read_end_txn_marker
from headpond.protocol.records.header import (
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)
from headpond.protocol.records.pairs import iter_pairs
from headpond.protocol.records.reader import read_payload
from headpond.protocol.records.record import Record
from headpond.storage.log.log import PartitionLog

READ_BYTES = 1_048_576
"""Read at once while loading."""
PART_RECORDS = 500
"""Of a batch, taken apart at a stretch."""
ROOM_BYTES = 16_384
"""Asked for before a decision, whose size is not known yet: more than nearly all of them write. A larger batch makes
its segment that much longer than ``segment.bytes``."""


class InternalTopic:
    """``coordination.home.CoordinatorHome`` on the replicas of one topic."""

    def __init__(
        self, topic: str, replicas: Replicas, clock: Clock, *, commit_timeout_ms: Callable[[], int] | None = None
    ) -> None:
        """``commit_timeout_ms``: None for those who rather wait than not know."""
        self._topic = topic
        self._replicas = replicas
        self._clock = clock
        self._commit_timeout_ms = commit_timeout_ms

    def has_room(self, partition: int) -> bool:
        log = self._replica(partition).partition.log
        now_ms = self._clock.now_ms()
        return log.can_append(_room_bytes(log), now_ms, now_ms)

    async def make_room(self, partition: int) -> None:
        log = self._replica(partition).partition.log
        now_ms = self._clock.now_ms()
        await log.make_room(_room_bytes(log), now_ms, now_ms)

    def append(self, partition: int, records: Sequence[KeyValue], producer: Producer | None) -> int:
        leader = self._replica(partition).partition
        now_ms = self._clock.now_ms()
        rows = [Record(number, now_ms, key, value) for number, (key, value) in enumerate(records)]
        if producer is None:
            batch = build_batch(rows)
        else:
            batch = build_batch(
                rows,
                attributes=TRANSACTIONAL_BIT,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=0,
            )
        if len(batch) > leader.log.config.max_message_bytes:
            raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE, f"{len(batch)} bytes of records for {leader.tp}")
        if not leader.log.can_hold(len(batch)):
            raise StorageFailed(message=f"{leader.tp} needs a new segment for {len(batch)} bytes")
        view = memoryview(batch)
        appended = leader.append(view, read_header(view), now_ms, is_urgent=True, is_coordinator=True)
        return appended.last_offset + 1

    async def committed(self, partition: int, end_offset: int) -> None:
        await self._replica(partition).partition.committed(end_offset, self._timeout_ms())

    def when_committed(self, partition: int, end_offset: int, waiter: Waiter) -> None:
        self._replica(partition).partition.when_committed(end_offset, waiter, self._timeout_ms())

    async def read(self, partition: int) -> AsyncIterator[Stored | Ended]:
        log = self._replica(partition).partition.log
        offset, end_offset = log.log_start_offset, log.log_end_offset
        while offset < end_offset:
            read = await log.read_cold(
                offset, up_to_end_offset=end_offset, size_bytes_max=READ_BYTES, at_least_one_batch=True
            )
            if not read.data:
                return  # nothing but a gap that compaction left
            for header, batch in _batches(read.data):
                if header.base_offset + header.last_offset_delta < offset:
                    continue
                for found in _stored(header, batch):
                    yield found
            offset = read.next_offset

    def _timeout_ms(self) -> int | None:
        return None if self._commit_timeout_ms is None else self._commit_timeout_ms()

    def _replica(self, partition: int) -> Replica:
        replica = self._replicas.get(TopicPartition(self._topic, partition))
        if replica is None or not replica.partition.is_leader:
            raise NotLeader(message=f"this broker does not lead {self._topic}-{partition}")
        return replica


def _room_bytes(log: PartitionLog) -> int:
    """Never so much that a segment with a few batches counts as full."""
    return min(ROOM_BYTES, log.config.max_message_bytes, log.config.segment_bytes // 2)


def _batches(data: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """One at a time: thousands of markers fit into what is read at once."""
    view = memoryview(data)
    at = 0
    while at + HEADER_BYTES <= len(view):
        header = read_header(view, at)
        size = LOG_OVERHEAD_BYTES + header.batch_length
        yield header, view[at : at + size]
        at += size


def _stored(header: BatchHeader, batch: memoryview) -> Iterator[Stored | Ended]:
    """What the batch says, a large one in parts: whoever reads them may pause in between, hence also after one that
    says nothing."""
    producer = Producer(header.producer_id, header.producer_epoch)
    if header.attributes & CONTROL_BIT:
        marker = read_end_txn_marker(batch)
        yield Stored(()) if marker is None else Ended(producer, is_commit=not marker.is_abort)
        return
    on_behalf_of = producer if header.attributes & TRANSACTIONAL_BIT else None
    if header.count == 0:
        yield Stored(())
    pairs = iter_pairs(read_payload(batch, header), header.count)
    while part := list(islice(pairs, PART_RECORDS)):
        yield Stored(part, on_behalf_of)
