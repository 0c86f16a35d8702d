"""Transaction markers on the partitions that this broker leads, for its own coordinator and for WriteTxnMarkers.

A marker is answered when it is durable and visible. Each partition succeeds or fails by itself, and trying again does
no harm. A partition of the offsets' topic takes a marker only while its group coordinator can hear of it, at the very
moment of the append: its memory follows the order of the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from headpond.broker.replicas.replicas import Replicas
from headpond.broker.requests.side_by_side import side_by_side
from headpond.coordination.home import Ended, Producer
from headpond.coordination.slices import Slices
from headpond.coordination.transactions.markers import Marker
from headpond.model import BrokerError, ErrorCode, NotLeader, TopicPartition
from headpond.ports import Clock, Tasks
from headpond.replication.partition import MARKER_BYTES, Partition

_log = logging.getLogger(__name__)

TIMEOUT_MS = 30_000
"""Kafka's request.timeout.ms: whoever sent the marker sends it again after that."""
EPOCH_RISES_SINCE = 2


class OffsetsKeeper(Protocol):
    """The coordinator behind the partitions of ``__consumer_offsets``."""

    def is_serving(self, partition: int) -> bool: ...

    def ended(self, partition: int, ended: Ended) -> None: ...


class LocalMarkers:
    """``coordination.transactions.markers.MarkerSender`` where this broker leads everything."""

    def __init__(
        self,
        replicas: Replicas,
        clock: Clock,
        tasks: Tasks,
        slices: Slices,
        *,
        offsets_topic: str,
        offsets: OffsetsKeeper,
    ) -> None:
        self._replicas = replicas
        self._clock = clock
        self._tasks = tasks
        self._slices = slices
        self._offsets_topic = offsets_topic
        self._offsets = offsets

    def send(
        self,
        marker: Marker,
        partitions: Collection[TopicPartition],
        answer: Callable[[Mapping[TopicPartition, ErrorCode]], None],
    ) -> None:
        async def write() -> None:
            answer(await self.write(marker, partitions))

        self._tasks.spawn("write transaction markers", write())

    async def write(self, marker: Marker, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        """How it went on each; never raises."""
        written = side_by_side(lambda tp: self._write_one(marker, tp), partitions, self._slices)
        return {tp: code async for tp, code in written}

    async def _write_one(self, marker: Marker, tp: TopicPartition) -> ErrorCode:
        try:
            await self._append(marker, tp)
        except BrokerError as failed:
            return ErrorCode(failed.code)
        except Exception:
            _log.exception("the marker of producer %d could not be written to %s", marker.producer_id, tp)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    async def _append(self, marker: Marker, tp: TopicPartition) -> None:
        while True:
            replica = self._replicas.get(tp)
            if replica is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if tp.topic == self._offsets_topic and not self._offsets.is_serving(tp.partition):
                raise NotLeader(message=f"the coordinator of {tp} is not ready")
            partition = replica.partition
            partition.require_leader()
            now_ms = self._clock.now_ms()
            if partition.log.can_append(MARKER_BYTES, now_ms, now_ms):
                break
            await partition.log.make_room(MARKER_BYTES, now_ms, now_ms)
        end_offset = self._append_now(marker, partition, now_ms)
        await partition.committed(end_offset, TIMEOUT_MS)

    def _append_now(self, marker: Marker, partition: Partition, now_ms: int) -> int:
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "a marker of no producer")
        appended = partition.end_transaction(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            is_abort=not marker.is_commit,
            coordinator_epoch=marker.coordinator_epoch,
            raises_epoch=marker.transaction_version >= EPOCH_RISES_SINCE,
            now_ms=now_ms,
        )
        if partition.tp.topic == self._offsets_topic:
            producer = Producer(marker.producer_id, marker.producer_epoch)
            self._offsets.ended(partition.tp.partition, Ended(producer, marker.is_commit))
        return appended.last_offset + 1
