"""What is written to a coordinator's log is written a part at a time when there is much of it, and answered as one."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.broker.handlers.groups import (
    join_group,
    leave_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from headpond.broker.handlers.groups.join_group import PROTOCOLS_MAX
from headpond.broker.handlers.groups.leave_group import MEMBERS_AT_ONCE
from headpond.broker.handlers.topics.topic_answers import PARTITIONS_AT_ONCE
from headpond.broker.handlers.transactions import txn_offset_commit
from headpond.cluster.topics import NewTopic
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.leave_group import LeaveGroupRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest
from unit.broker.coordinator_cases import GROUP, ID, TOPIC, Coordinators, with_coordinators

WIDE = "wide"
PARTITIONS = 1_300
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def with_wide_topic(broker: Coordinators) -> None:
    await broker.cluster.metadata_writer.create_topic(NewTopic(WIDE, PARTITIONS, 1), timeout_ms=60_000)


def told(answer: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (topic.name, [(row.partition_index, row.error_code) for row in topic.partitions]) for topic in answer.topics
    ]


def committed(broker: Coordinators, name: str) -> dict[int, int]:
    offsets = broker.broker.groups.read(GROUP, lambda machine: machine.offsets.of_group(GROUP))
    return {partition: found.offset for partition, found in offsets.get(name, {}).items()}


def commit_of(*topics: tuple[str, int]) -> OffsetCommitRequest:
    partition, topic = OffsetCommitRequest.OffsetCommitRequestPartition, OffsetCommitRequest.OffsetCommitRequestTopic
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[
            topic(name, partitions=[partition(n, n + 7, committed_metadata="") for n in range(count)])
            for name, count in topics
        ],
    )


ALL_OF_IT = [
    ("missing", [(0, UNKNOWN), (1, UNKNOWN)]),
    (WIDE, [*((n, UNKNOWN) for n in range(PARTITIONS, PARTITIONS + 20)), *((n, 0) for n in range(PARTITIONS))]),
    (TOPIC, [(0, 0)]),
]
"""Of WIDE the partitions that do not exist come first, as in a small answer."""


def test_very_many_offsets_are_committed_in_parts_and_answered_as_one() -> None:
    async def scenario(broker: Coordinators) -> None:
        await with_wide_topic(broker)
        before = len(broker.homes[GROUP].batches)
        request = commit_of(("missing", 2), (WIDE, PARTITIONS + 20), (TOPIC, 1))
        assert told(await broker.ask(offset_commit, 9, request)) == ALL_OF_IT
        assert committed(broker, WIDE) == {n: n + 7 for n in range(PARTITIONS)}
        assert committed(broker, TOPIC) == {0: 7}
        assert len(broker.homes[GROUP].batches) - before == 1 + PARTITIONS // PARTITIONS_AT_ONCE

    with_coordinators(scenario)


def leads_for(broker: Coordinators, parts: int, then: ErrorCode | None = None) -> None:
    """So many writes from now on; then this broker no longer leads the group's partition, or writes fail otherwise."""
    runtime = broker.broker.groups.runtime
    write, writes = runtime.write, 0

    async def some(key: str, decide: Any) -> Any:
        nonlocal writes
        writes += 1
        if then is not None and writes > parts:
            raise BrokerError(then)
        if writes == parts + 1:
            runtime.resign(runtime._partition_of(key))
        return await write(key, decide)

    runtime.write = some  # type: ignore[method-assign,assignment]


def test_a_part_that_is_refused_leaves_what_was_committed_before_it() -> None:
    async def scenario(broker: Coordinators) -> None:
        await with_wide_topic(broker)
        leads_for(broker, 1)
        [(name, rows)] = told(await broker.ask(offset_commit, 9, commit_of((WIDE, PARTITIONS))))
        assert name == WIDE
        assert [code for _, code in rows] == [0] * PARTITIONS_AT_ONCE + [ErrorCode.NOT_COORDINATOR] * (
            PARTITIONS - PARTITIONS_AT_ONCE
        )

    with_coordinators(scenario)


def test_very_many_offsets_are_deleted_in_parts() -> None:
    async def scenario(broker: Coordinators) -> None:
        await with_wide_topic(broker)
        await broker.ask(offset_commit, 9, commit_of((WIDE, PARTITIONS), (TOPIC, 1)))
        partition = OffsetDeleteRequest.OffsetDeleteRequestPartition
        topics = [
            OffsetDeleteRequest.OffsetDeleteRequestTopic(name, [partition(n) for n in range(count)])
            for name, count in (("missing", 2), (WIDE, PARTITIONS + 20), (TOPIC, 1))
        ]
        answer = await broker.ask(offset_delete, 0, OffsetDeleteRequest(group_id=GROUP, topics=topics))
        assert (answer.error_code, told(answer)) == (0, ALL_OF_IT)
        assert committed(broker, WIDE) == committed(broker, TOPIC) == {}

    with_coordinators(scenario)


def test_very_many_offsets_of_a_transaction_are_refused_or_pending_each_by_itself() -> None:
    async def scenario(broker: Coordinators) -> None:
        await with_wide_topic(broker)
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        request = TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=GROUP,
            producer_id=0,
            producer_epoch=0,
            topics=[topic(WIDE, [partition(n, 1, committed_metadata="") for n in range(PARTITIONS)])],
        )
        [(name, rows)] = told(await broker.ask(txn_offset_commit, 3, request))  # of a transaction that nobody began
        assert name == WIDE and [index for index, _ in rows] == list(range(PARTITIONS))
        assert len({code for _, code in rows} - {0}) == 1

    with_coordinators(scenario)


def test_offsets_of_very_many_topics_are_told_in_the_order_in_which_they_are_asked_for() -> None:
    async def scenario(broker: Coordinators) -> None:
        await broker.ask(offset_commit, 9, commit_of((TOPIC, 1)))
        topic = OffsetFetchRequest.OffsetFetchRequestTopics
        topics = [topic(name=f"t{n}", partition_indexes=[0]) for n in range(5_000)]
        topics.append(topic(name=TOPIC, partition_indexes=[0, 1]))
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        answer = await broker.ask(offset_fetch, 9, OffsetFetchRequest(groups=[group]))
        rows = answer.groups[0].topics
        assert [row.name for row in rows] == [each.name for each in topics]
        assert [row.committed_offset for row in rows[-1].partitions] == [7, -1]

    with_coordinators(scenario)


def test_very_many_members_leave_in_parts() -> None:
    async def scenario(broker: Coordinators) -> None:
        members = [LeaveGroupRequest.MemberIdentity(member_id=f"m{n}") for n in range(3 * MEMBERS_AT_ONCE + 1)]
        answer = await broker.ask(leave_group, 5, LeaveGroupRequest(group_id=GROUP, members=members))
        assert [row.member_id for row in answer.members] == [member.member_id for member in members]
        assert {row.error_code for row in answer.members} == {ErrorCode.UNKNOWN_MEMBER_ID}
        nobody = await broker.ask(leave_group, 5, LeaveGroupRequest(group_id=GROUP))
        assert (nobody.error_code, nobody.members) == (0, [])
        alone = await broker.ask(leave_group, 2, LeaveGroupRequest(group_id=GROUP, member_id="m"))
        assert alone.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    with_coordinators(scenario)


def test_members_that_could_not_leave_any_more_are_told_so_and_the_others_have_left() -> None:
    async def scenario(broker: Coordinators) -> None:
        leads_for(broker, 1)
        members = [
            LeaveGroupRequest.MemberIdentity(member_id=f"m{n}", group_instance_id=f"i{n}")
            for n in range(2 * MEMBERS_AT_ONCE + 1)
        ]
        answer = await broker.ask(leave_group, 5, LeaveGroupRequest(group_id=GROUP, members=members))
        assert answer.error_code == 0
        assert [(row.member_id, row.group_instance_id) for row in answer.members] == [
            (member.member_id, member.group_instance_id) for member in members
        ]
        assert [row.error_code for row in answer.members] == (
            [ErrorCode.UNKNOWN_MEMBER_ID] * MEMBERS_AT_ONCE + [ErrorCode.NOT_COORDINATOR] * (MEMBERS_AT_ONCE + 1)
        )
        none = await broker.ask(leave_group, 5, LeaveGroupRequest(group_id=GROUP, members=members))
        assert (none.error_code, none.members) == (ErrorCode.NOT_COORDINATOR, [])

    with_coordinators(scenario)


def test_offsets_that_could_not_be_deleted_any_more_are_told_one_by_one() -> None:
    async def scenario(broker: Coordinators) -> None:
        await with_wide_topic(broker)
        await broker.ask(offset_commit, 9, commit_of((WIDE, PARTITIONS)))
        leads_for(broker, 1, then=ErrorCode.NOT_ENOUGH_REPLICAS)
        answer = await broker.ask(offset_delete, 0, delete_all())
        [(_, rows)] = told(answer)
        assert answer.error_code == 0
        assert [code for _, code in rows] == [0] * PARTITIONS_AT_ONCE + [ErrorCode.NOT_ENOUGH_REPLICAS] * (
            PARTITIONS - PARTITIONS_AT_ONCE
        )
        none = await broker.ask(offset_delete, 0, delete_all())
        assert (none.error_code, none.topics) == (ErrorCode.NOT_ENOUGH_REPLICAS, [])

    with_coordinators(scenario)


def test_a_client_is_told_to_delete_its_offsets_again_when_the_coordinator_moves_in_the_middle() -> None:
    async def scenario(broker: Coordinators) -> None:
        await with_wide_topic(broker)
        await broker.ask(offset_commit, 9, commit_of((WIDE, PARTITIONS)))
        leads_for(broker, 1)
        answer = await broker.ask(offset_delete, 0, delete_all())
        assert (answer.error_code, answer.topics) == (ErrorCode.NOT_COORDINATOR, [])

    with_coordinators(scenario)


def delete_all() -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequest.OffsetDeleteRequestPartition(n) for n in range(PARTITIONS)]
    return OffsetDeleteRequest(group_id=GROUP, topics=[OffsetDeleteRequest.OffsetDeleteRequestTopic(WIDE, partitions)])


@pytest.mark.parametrize("strangers", [0, 5_000])
def test_an_assignment_with_very_many_strangers_reaches_the_members(strangers: int) -> None:
    async def scenario(broker: Coordinators) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol("range", b"")
        joining = JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer"
        )
        joining.protocols = [protocol]
        joined = await broker.ask(join_group, 3, joining)
        given = SyncGroupRequest.SyncGroupRequestAssignment
        assignments = [given(f"m{n}", b"theirs") for n in range(strangers)] + [given(joined.member_id, b"mine")]
        request = SyncGroupRequest(GROUP, joined.generation_id, joined.member_id, assignments=assignments)
        assert (await broker.ask(sync_group, 3, request)).assignment == b"mine"

    with_coordinators(scenario)


def test_a_member_with_too_many_protocols_is_refused() -> None:
    async def scenario(broker: Coordinators) -> None:
        protocols = [JoinGroupRequest.JoinGroupRequestProtocol(f"p{n}", b"") for n in range(PROTOCOLS_MAX + 1)]
        request = JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer"
        )
        request.protocols = protocols
        assert (await broker.ask(join_group, 9, request)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        request.protocols = protocols[:-1]
        assert (await broker.ask(join_group, 9, request)).error_code == ErrorCode.MEMBER_ID_REQUIRED

    with_coordinators(scenario)
