"""Consumer groups, as an administrator asks for them: which there are, who is in them, how far they are.

Looking changes nothing and is repeated until time is up. So is committing offsets, for it says where a group shall be;
a deletion is sent once. Works with Kafka 3.0 and newer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headpond.client.client import Client
from headpond.client.consumer_protocol import read_assignment
from headpond.client.coordinators import Coordinated, ask_all_brokers, ask_coordinator, find_coordinator
from headpond.client.errors import ClientError, refusal
from headpond.client.routing import topics_of
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from headpond.protocol.schema.delete_groups import DeleteGroupsRequest
from headpond.protocol.schema.describe_groups import DescribeGroupsRequest
from headpond.protocol.schema.list_groups import ListGroupsRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest

BY_NAME_VERSION_MAX = 9
"""OffsetCommit and OffsetFetch name topics by their ids from v10 on."""
UNDECIDED = frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT})
CONSUMER = "consumer"
EMPTY_STATES = ("Empty", "Dead")


class ListedGroup(NamedTuple):
    group_id: str
    kind: str
    """ "classic", "consumer" (KIP-848), "share", "streams"; "" where the broker is too old to say."""
    state: str
    protocol_type: str
    """ "consumer", "connect", ...; "" of a group that never had a member."""


class GroupMember(NamedTuple):
    member_id: str
    instance_id: str | None
    """Of a static member."""
    client_id: str
    host: str
    assignment: list[TopicPartition]


class GroupDescription(NamedTuple):
    group_id: str
    kind: str
    state: str
    protocol_type: str
    assignor: str
    coordinator_id: int
    members: list[GroupMember]

    @property
    def is_empty(self) -> bool:
        return self.state in EMPTY_STATES


class GroupOffset(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class Groups:
    def __init__(self, client: Client, *, timeout_s: float | None = None) -> None:
        self.client = client
        self.timeout_s = client.timeout_s if timeout_s is None else timeout_s

    async def all(self) -> list[ListedGroup]:
        """The groups of all brokers, by name."""
        answers = await ask_all_brokers(self.client, ListGroupsRequest(), "the groups", self.timeout_s)
        found = {
            one.group_id: ListedGroup(one.group_id, one.group_type.lower(), one.group_state, one.protocol_type)
            for answer in answers.values()
            for one in answer.groups
        }
        return [found[name] for name in sorted(found)]

    async def describe(self, group_id: str) -> GroupDescription | None:
        """None: there is no such group, or it is one of another kind than classic and consumer."""
        found = await self._describe_consumer(group_id)
        return found if found is not None else await self._describe_classic(group_id)

    async def _describe_consumer(self, group_id: str) -> GroupDescription | None:
        try:
            response = await self._ask(group_id, ConsumerGroupDescribeRequest(group_ids=[group_id]), _codes_of_groups)
        except ClientError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:  # before KIP-848
                return None
            raise
        (group,) = response.groups
        if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            return None
        _raise_for(group, group_id)
        members = [
            GroupMember(
                one.member_id,
                one.instance_id,
                one.client_id,
                one.client_host.removeprefix("/"),
                [
                    TopicPartition(topic.topic_name, partition)
                    for topic in sorted(one.assignment.topic_partitions, key=lambda topic: topic.topic_name)
                    for partition in sorted(topic.partitions)
                ],
            )
            for one in group.members
        ]
        coordinator_id = await find_coordinator(self.client, "group", group_id, self.timeout_s)
        return GroupDescription(
            group_id, CONSUMER, group.group_state, CONSUMER, group.assignor_name, coordinator_id, members
        )

    async def _describe_classic(self, group_id: str) -> GroupDescription | None:
        response = await self._ask(group_id, DescribeGroupsRequest(groups=[group_id]), _codes_of_groups)
        (group,) = response.groups
        is_absent = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        if is_absent or (not group.error_code and group.group_state == "Dead"):  # as it was said before v6
            return None
        _raise_for(group, group_id)
        members = [
            GroupMember(
                one.member_id,
                one.group_instance_id,
                one.client_id,
                one.client_host.removeprefix("/"),
                read_assignment(one.member_assignment) if group.protocol_type == CONSUMER else [],
            )
            for one in group.members
        ]
        coordinator_id = await find_coordinator(self.client, "group", group_id, self.timeout_s)
        return GroupDescription(
            group_id, "classic", group.group_state, group.protocol_type, group.protocol_data, coordinator_id, members
        )

    async def offsets(self, group_id: str, *, require_stable: bool = False) -> dict[TopicPartition, GroupOffset]:
        """Everything that the group has committed, in the order of topics and partitions. ``require_stable``: waits
        for transactions that have not decided yet about what is there."""
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)
        request = OffsetFetchRequest(groups=[wanted], require_stable=require_stable)

        def codes_of(response: Any) -> list[int]:
            (group,) = response.groups
            return [group.error_code, *(one.error_code for topic in group.topics for one in topic.partitions)]

        response = await self._ask(group_id, request, codes_of, version_max=BY_NAME_VERSION_MAX, also_retried=UNDECIDED)
        (group,) = response.groups
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return {}
        _raise_for(group, group_id)
        found: dict[TopicPartition, GroupOffset] = {}
        for topic in group.topics:
            for one in topic.partitions:
                tp = TopicPartition(topic.name, one.partition_index)
                if one.error_code:
                    raise refusal(one.error_code, f"group {group_id}, {tp}")
                if one.committed_offset >= 0:
                    found[tp] = GroupOffset(one.committed_offset, one.committed_leader_epoch, one.metadata or "")
        return dict(sorted(found.items()))

    async def commit(
        self, group_id: str, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ClientError | None]:
        """Set where a group without members goes on; a result for each partition."""
        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=tp.partition, committed_offset=offsets[tp]
                    )
                    for tp in partitions
                ],
            )
            for name, partitions in topics_of(offsets).items()
        ]
        request = OffsetCommitRequest(group_id=group_id, topics=topics)

        def codes_of(response: Any) -> list[int]:
            return [one.error_code for topic in response.topics for one in topic.partitions]

        response = await self._ask(group_id, request, codes_of, version_max=BY_NAME_VERSION_MAX)
        return {
            TopicPartition(topic.name, one.partition_index): refusal(
                one.error_code, f"group {group_id}, {topic.name}-{one.partition_index}"
            )
            if one.error_code
            else None
            for topic in response.topics
            for one in topic.partitions
        }

    async def delete(self, group_ids: Sequence[str]) -> dict[str, ClientError | None]:
        """With their offsets, those without members; a result for each."""

        async def delete_one(group_id: str) -> ClientError | None:
            request = DeleteGroupsRequest(groups_names=[group_id])
            try:
                response = await self._ask(
                    group_id, request, lambda answer: [one.error_code for one in answer.results], may_repeat=False
                )
            except ClientError as error:
                return error
            (one,) = response.results
            return refusal(one.error_code, f"group {group_id}") if one.error_code else None

        outcomes = await asyncio.gather(*map(delete_one, group_ids))
        return dict(zip(group_ids, outcomes, strict=True))

    async def _ask(
        self,
        group_id: str,
        request: Any,
        codes_of: Any,
        *,
        may_repeat: bool = True,
        version_max: int | None = None,
        also_retried: frozenset[ErrorCode] = frozenset(),
    ) -> Any:
        return await ask_coordinator(
            self.client,
            Coordinated("group", group_id),
            request,
            codes_of,
            self.timeout_s,
            may_repeat=may_repeat,
            version_max=version_max,
            also_retried=also_retried,
        )


def _codes_of_groups(response: Any) -> list[int]:
    return [group.error_code for group in response.groups]


def _raise_for(group: Any, group_id: str) -> None:
    if group.error_code:
        raise refusal(group.error_code, f"group {group_id}", getattr(group, "error_message", None))
