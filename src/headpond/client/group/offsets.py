"""OffsetCommit and OffsetFetch of a member of a group: fenced by its id and its generation or epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headpond.client.client import Client
from headpond.client.coordinators import Coordinated, ask_coordinator
from headpond.client.errors import ClientError, RequestTimedOut, error_code, refusal
from headpond.client.group_admin import BY_NAME_VERSION_MAX, UNDECIDED, GroupOffset
from headpond.client.routing import topics_of
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest

PERHAPS_WRITTEN = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""Also said by a coordinator that wrote a commit and then lost its log, or saw it replicated too late."""


class Identity(NamedTuple):
    member_id: str
    epoch: int
    """The generation of a classic member."""
    instance_id: str | None


async def commit_offsets(
    client: Client, group: Coordinated, who: Identity, offsets: Mapping[TopicPartition, GroupOffset]
) -> dict[TopicPartition, ErrorCode]:
    """The outcome of each partition. Raises ``ClientError`` when there is none; ``is_outcome_unknown`` says whether
    the commit may have been, or may still be, carried out."""
    topics = [
        OffsetCommitRequest.OffsetCommitRequestTopic(
            name=name,
            partitions=[
                OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=offsets[tp].offset,
                    committed_leader_epoch=offsets[tp].leader_epoch,
                    committed_metadata=offsets[tp].metadata,
                )
                for tp in tps
            ],
        )
        for name, tps in topics_of(sorted(offsets)).items()
    ]
    request = OffsetCommitRequest(
        group_id=group.key,
        generation_id_or_member_epoch=who.epoch,
        member_id=who.member_id,
        group_instance_id=who.instance_id,
        topics=topics,
    )
    is_unsure = False

    def codes_of(response: Any) -> list[int]:
        nonlocal is_unsure
        codes = [one.error_code for topic in response.topics for one in topic.partitions]
        is_unsure = is_unsure or any(code in PERHAPS_WRITTEN for code in codes)
        return codes

    try:
        response = await ask_coordinator(
            client, group, request, codes_of, client.timeout_s, may_repeat=False, version_max=BY_NAME_VERSION_MAX
        )
    except ClientError as error:
        if is_unsure and not error.is_outcome_unknown:
            raise RequestTimedOut(f"commit of {group}: outcome unknown: {error}") from error
        raise
    outcomes = {
        TopicPartition(topic.name, one.partition_index): error_code(one.error_code)
        for topic in response.topics
        for one in topic.partitions
    }
    if is_unsure and any(outcomes.values()):  # this attempt was refused; an earlier one may have been written
        raise RequestTimedOut(f"commit of {group}: outcome unknown: refused when it was repeated")
    return dict(sorted(outcomes.items()))


async def fetch_offsets(
    client: Client, group: Coordinated, who: Identity | None, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, GroupOffset | None]:
    """What the group has committed, None where nothing; waits for transactions that have not decided yet. ``who``:
    only for the consumer protocol, whose coordinator checks it."""
    wanted = sorted(partitions)
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group.key,
        topics=[
            OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=[tp.partition for tp in tps])
            for name, tps in topics_of(wanted).items()
        ],
    )
    if who is not None:
        asked.member_id, asked.member_epoch = who.member_id, who.epoch

    def codes_of(response: Any) -> list[int]:
        (found,) = response.groups
        return [found.error_code, *(one.error_code for topic in found.topics for one in topic.partitions)]

    response = await ask_coordinator(
        client,
        group,
        OffsetFetchRequest(groups=[asked], require_stable=True),
        codes_of,
        client.timeout_s,
        may_repeat=True,
        version_max=BY_NAME_VERSION_MAX,
        also_retried=UNDECIDED,
    )
    for code in codes_of(response):
        if code:
            raise refusal(code, f"committed offsets of {group}")
    found: dict[TopicPartition, GroupOffset | None] = dict.fromkeys(wanted)
    for topic in response.groups[0].topics:
        for one in topic.partitions:
            if one.committed_offset >= 0:
                offset = GroupOffset(one.committed_offset, one.committed_leader_epoch, one.metadata or "")
                found[TopicPartition(topic.name, one.partition_index)] = offset
    return found
