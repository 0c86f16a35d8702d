"""ListOffsets: where a partition begins, ends, or reaches a time. Asked of each partition's leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from headpond.client.client import ATTEMPT_TIMEOUT_S_MAX, Client
from headpond.client.errors import ClientError, refusal
from headpond.client.routing import ask_leaders, topics_of
from headpond.model import TopicPartition
from headpond.protocol.schema.list_offsets import ListOffsetsRequest

LATEST = -1
"""One after the last record: under read_committed, after the last whose transaction is decided."""
EARLIEST = -2
MAX_TIMESTAMP = -3
"""The record with the highest timestamp."""

Isolation = Literal["read_committed", "read_uncommitted"]
ISOLATION_LEVELS: dict[Isolation, int] = {"read_uncommitted": 0, "read_committed": 1}


class ListedOffset(NamedTuple):
    offset: int
    """-1: no record is as late as that."""
    timestamp_ms: int
    leader_epoch: int


async def list_offsets(
    client: Client, specs: Mapping[TopicPartition, int], *, isolation: Isolation, timeout_s: float
) -> dict[TopicPartition, ListedOffset | ClientError]:
    level = ISOLATION_LEVELS[isolation]

    async def ask(node_id: int, part: dict[TopicPartition, int]) -> dict[TopicPartition, ListedOffset | ClientError]:
        topics = [
            ListOffsetsRequest.ListOffsetsTopic(
                name=name, partitions=[_wanted(client, tp, part[tp]) for tp in partitions]
            )
            for name, partitions in topics_of(part).items()
        ]
        attempt_s = min(timeout_s, ATTEMPT_TIMEOUT_S_MAX)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=level, topics=topics, timeout_ms=int(attempt_s * 1_000)
        )
        response = await client.request(request, node_id, attempt_s)
        answers: dict[TopicPartition, ListedOffset | ClientError] = {}
        for topic in response.topics:
            for one in topic.partitions:
                tp = TopicPartition(topic.name, one.partition_index)
                if one.error_code:
                    answers[tp] = refusal(one.error_code, f"offsets of {tp}")
                else:
                    answers[tp] = ListedOffset(one.offset, one.timestamp, one.leader_epoch)
        return answers

    return await ask_leaders(client, specs, ask, timeout_s)


def _wanted(client: Client, tp: TopicPartition, spec: int) -> ListOffsetsRequest.ListOffsetsPartition:
    leader = client.cluster.leader(tp)
    epoch = leader.leader_epoch if leader is not None else -1
    return ListOffsetsRequest.ListOffsetsPartition(
        partition_index=tp.partition, current_leader_epoch=epoch, timestamp=spec
    )
