"""DescribeTopicPartitions: v0 (KIP-966).

Behaviour   Topics sorted by name, all of them when none is named; at most ``response_partition_limit`` partitions, and
            never more than ``max.request.partition.size.limit``, then a cursor to go on from. Topics that do not exist
            cost nothing of the limit. A cursor that names a topic outside the request, or a negative partition, fails
            the whole request with INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge

from headpond.broker.handlers.topics.metadata import offline_replicas, reachable_leader
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK, SLICE_COST
from headpond.broker.security.authorizer import Operation, ResourceType, authorized_operations, is_allowed
from headpond.cluster.names import is_internal, is_valid
from headpond.cluster.rows import PartitionState
from headpond.model import ErrorCode
from headpond.protocol.schema.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor


async def handle(ctx: Context, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    named = await ctx.counted(topic.name for topic in request.topics)
    cursor = request.cursor
    first_topic, first_partition = (cursor.topic_name, cursor.partition_index) if cursor is not None else ("", 0)
    if cursor is not None and (first_partition < 0 or (named and first_topic not in named)):
        refused = [
            Topic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
            async for topic in ctx.in_slices(request.topics)
        ]
        return DescribeTopicPartitionsResponse(topics=refused)

    limit = min(request.response_partition_limit, ctx.broker.settings.topics.described_partitions_max)
    answer = _Answer(ctx, room=max(limit, 1), answers_missing=bool(named))
    hidden: list[Topic] = []
    async for name in ctx.in_slices(await _sorted(ctx, named or list(ctx.broker.image.topics), first_topic)):
        if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, name):
            if named:
                hidden.append(Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name))
        elif not await answer.add(name, first_partition if name == first_topic else 0):
            break
    return DescribeTopicPartitionsResponse(topics=answer.topics + hidden, next_cursor=answer.next_cursor)


async def _sorted(ctx: Context, names: Iterable[str], first: str) -> Iterator[str]:
    """From ``first`` on: short runs are sorted at once, and merged while the answer is put together."""
    after = [name async for name in ctx.in_slices(names, A_LOOK) if name >= first]
    runs = [sorted(run) async for run in ctx.in_parts(after, SLICE_COST, A_LOOK)]
    return merge(*runs)


class _Answer:
    """Collects topics until there is no room for more partitions."""

    def __init__(self, ctx: Context, *, room: int, answers_missing: bool) -> None:
        self.topics: list[Topic] = []
        self.next_cursor: Cursor | None = None
        self._ctx = ctx
        self._room = room
        self._answers_missing = answers_missing

    async def add(self, name: str, first_partition: int) -> bool:
        """False: the answer is full, and the cursor stands where the next one begins."""
        if self._room == 0:
            self.next_cursor = Cursor(topic_name=name, partition_index=0)
            return False
        topic = self._ctx.broker.image.topics.get(name)
        operations = authorized_operations(self._ctx, ResourceType.TOPIC, name)
        if topic is None:
            if self._answers_missing:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
                self.topics.append(
                    Topic(
                        error_code=error,
                        name=name,
                        is_internal=is_internal(name),
                        topic_authorized_operations=operations,
                    )
                )
            return True
        end = min(len(topic.partitions), first_partition + self._room)
        states = enumerate(topic.partitions[first_partition:end], start=first_partition)
        self.topics.append(
            Topic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=is_internal(name),
                partitions=[self._partition(index, state) async for index, state in self._ctx.in_slices(states)],
                topic_authorized_operations=operations,
            )
        )
        self._room -= max(0, end - first_partition)
        if end < len(topic.partitions):
            self.next_cursor = Cursor(topic_name=name, partition_index=end)
            return False
        return True

    def _partition(self, index: int, state: PartitionState) -> Partition:
        image, listener = self._ctx.broker.image, self._ctx.listener.name
        return Partition(
            partition_index=index,
            leader_id=reachable_leader(image, state, listener),
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            eligible_leader_replicas=list(state.elr),
            last_known_elr=list(state.last_known_elr),
            offline_replicas=offline_replicas(image, state, listener),
        )
