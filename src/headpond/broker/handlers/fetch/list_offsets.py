"""ListOffsets: v1-v11.

Behaviour   EARLIEST and LATEST are answered from memory; timestamps through the time index and one batch, off the loop
            and fair between connections; what is not found within half a minute is answered REQUEST_TIMED_OUT
            (``storage/looks/looks.py``).
            MAX_TIMESTAMP names a record that DeleteRecords removed as long as its segment is there, as Kafka does.
            LATEST under read_committed is the last stable offset, not the high watermark; nothing at or above what the
            caller may see is ever answered (-1, without error).
Versions    v4 current leader epoch (KIP-320) · v7 MAX_TIMESTAMP (KIP-734) · v8 EARLIEST_LOCAL · v9 LATEST_TIERED
            (KIP-1005) · v10 time-out · v11 EARLIEST_PENDING_UPLOAD (KIP-1023)
Not done    tiered storage: EARLIEST_LOCAL is the log start, LATEST_TIERED and EARLIEST_PENDING_UPLOAD are -1, as Kafka
            answers without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.requests.side_by_side import side_by_side
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.schema.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from headpond.replication.partition import Partition
from headpond.storage.looks.looks import Look

LOOKS_INTO_RECORDS = True
"""For as long as half a minute: only others that do so wait for the places that large ones have."""

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
SINCE_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
NO_EPOCH = -1
DEBUGGING_CONSUMER = -2

Wanted = ListOffsetsRequest.ListOffsetsPartition
Topic = ListOffsetsResponse.ListOffsetsTopicResponse
Row = ListOffsetsResponse.ListOffsetsPartitionResponse


class Answer(NamedTuple):
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


async def handle(ctx: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    # As Kafka answers: each topic and each of its partitions once, whatever was repeated or left empty.
    wanted_of: dict[str, dict[int, Wanted]] = {}
    repeated: set[TopicPartition] = set()
    async for topic in ctx.in_slices(request.topics, A_LOOK):
        async for wanted in ctx.in_slices(topic.partitions, A_LOOK):
            of_topic = wanted_of.setdefault(topic.name, {})
            if wanted.partition_index in of_topic:
                repeated.add(TopicPartition(topic.name, wanted.partition_index))
            of_topic[wanted.partition_index] = wanted
    ctx.leave()  # looking into records takes long, and little of the loop
    asked = _Asked(ctx, request, repeated)
    answers: dict[str, Topic] = {}
    async for (name, _), row in side_by_side(asked.row, _each(wanted_of), ctx.broker.pacing.slices):
        if name not in answers:
            answers[name] = Topic(name=name)
        answers[name].partitions.append(row)
    return ListOffsetsResponse(topics=list(answers.values()))


def _each(wanted_of: Mapping[str, Mapping[int, Wanted]]) -> Iterator[tuple[str, Wanted]]:
    for name, partitions in wanted_of.items():
        for wanted in partitions.values():
            yield name, wanted


class _Asked:
    """One request: what it looks into has one time limit."""

    def __init__(self, ctx: Context, request: ListOffsetsRequest, repeated: set[TopicPartition]) -> None:
        self._ctx = ctx
        self._request = request
        self._repeated = repeated

    @cached_property
    def _look(self) -> Look:
        return self._ctx.broker.logs.looks.begin(self._ctx.asker)

    async def row(self, asked: tuple[str, Wanted]) -> Row:
        name, wanted = asked
        try:
            answer = await self._answer(TopicPartition(name, wanted.partition_index), wanted)
        except BrokerError as failed:
            return Row(partition_index=wanted.partition_index, error_code=failed.code)
        return Row(
            partition_index=wanted.partition_index,
            timestamp=answer.timestamp,
            offset=answer.offset,
            leader_epoch=answer.leader_epoch if self._ctx.version >= 4 else -1,
        )

    async def _answer(self, tp: TopicPartition, wanted: Wanted) -> Answer:
        ctx, request = self._ctx, self._request
        if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if tp in self._repeated:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        if wanted.timestamp < 0 and ctx.version < SINCE_VERSION.get(wanted.timestamp, 1 << 15):
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
        if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, tp.topic):
            raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = ctx.broker.replicas.partition(tp)
        if partition is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if wanted.current_leader_epoch < NO_EPOCH:  # only -1 stands for none here; a fetch takes any below zero for it
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        partition.require_leader(wanted.current_leader_epoch)
        if wanted.timestamp not in (EARLIEST, EARLIEST_LOCAL):
            self._go_on(wanted)
            await partition.settle()
            partition.require_leader(wanted.current_leader_epoch)
        return await self._find(partition, wanted.timestamp, _visible_end(partition, request))

    def _go_on(self, wanted: Wanted) -> None:
        """Unless the client is gone, or a search has no time left."""
        if wanted.timestamp >= 0 or wanted.timestamp == MAX_TIMESTAMP:
            self._look.go_on()
        elif self._ctx.asker is not None and self._ctx.asker.closed:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT)

    async def _find(self, partition: Partition, timestamp: int, visible_end_offset: int) -> Answer:
        log = partition.log
        if timestamp == LATEST:
            return Answer(offset=visible_end_offset, leader_epoch=partition.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return Answer(offset=log.log_start_offset, leader_epoch=log.epochs.epoch_for(log.log_start_offset))
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return Answer()
        if timestamp == MAX_TIMESTAMP:
            found = await log.max_timestamp(up_to_end_offset=visible_end_offset, look=self._look)
        else:
            found = await log.offset_for_timestamp(timestamp, up_to_end_offset=visible_end_offset, look=self._look)
        return Answer() if found is None else Answer(*found)


def _visible_end(partition: Partition, request: ListOffsetsRequest) -> int:
    if request.replica_id == DEBUGGING_CONSUMER:
        return partition.log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark
