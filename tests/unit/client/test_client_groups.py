"""Groups are asked of their coordinator: found, waited for, followed when it moves; deletions are sent once."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from headpond.client import Client, ClientError
from headpond.client.group_admin import GroupOffset, Groups, ListedGroup
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.codec import encoder
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolAssignment
from headpond.protocol.schema.delete_groups import DeleteGroupsResponse
from headpond.protocol.schema.describe_groups import DescribeGroupsResponse
from headpond.protocol.schema.find_coordinator import FindCoordinatorResponse
from headpond.protocol.schema.list_groups import ListGroupsResponse
from headpond.protocol.schema.offset_commit import OffsetCommitResponse
from headpond.protocol.schema.offset_fetch import OffsetFetchResponse
from unit.client.memory_cluster import DROP_AFTER, SWALLOW, MemoryCluster

ORDERS = TopicPartition("orders", 0)
E = ErrorCode
CONSUMER_GROUP_DESCRIBE = 69


class GroupCluster(MemoryCluster):
    """``coordinator`` answers for all groups; each request takes the next of ``codes``, while there are any."""

    def __init__(self, nodes: int = 2) -> None:
        super().__init__(nodes, versions={CONSUMER_GROUP_DESCRIBE: (9, 9)})  # a Kafka before KIP-848
        self.coordinator = 2
        self.codes: deque[ErrorCode] = deque()
        self.assignment = b""

    def asked(self, name: str) -> list[int]:
        """The nodes that got such a request, in order."""
        return [node for node, message, _ in self.requests if type(message).__name__ == f"{name}Request"]

    def _code(self, node: int) -> int:
        if self.codes:
            return self.codes.popleft()
        return E.NONE if node == self.coordinator else E.NOT_COORDINATOR

    def _findcoordinator(self, node: int, request: Any, version: int) -> FindCoordinatorResponse:
        (key,) = request.coordinator_keys
        found = FindCoordinatorResponse.Coordinator(key=key, node_id=self.coordinator, host="b", port=self.coordinator)
        return FindCoordinatorResponse(coordinators=[found])

    def _listgroups(self, node: int, request: Any, version: int) -> ListGroupsResponse:
        if self.codes:
            return ListGroupsResponse(error_code=self.codes.popleft())
        listed = ListGroupsResponse.ListedGroup(f"of-{node}", "consumer", "Stable", "Classic")
        return ListGroupsResponse(groups=[listed])

    def _describegroups(self, node: int, request: Any, version: int) -> DescribeGroupsResponse:
        member = DescribeGroupsResponse.DescribedGroupMember(
            member_id="m", client_id="c", client_host="/192.0.2.1", member_assignment=self.assignment
        )
        group = DescribeGroupsResponse.DescribedGroup(
            error_code=self._code(node),
            group_id=request.groups[0],
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[member],
        )
        return DescribeGroupsResponse(groups=[group])

    def _offsetfetch(self, node: int, request: Any, version: int) -> OffsetFetchResponse:
        partition = OffsetFetchResponse.OffsetFetchResponsePartitions(0, 7, -1, "note")
        nothing = OffsetFetchResponse.OffsetFetchResponsePartitions(1, -1, -1, "")
        topic = OffsetFetchResponse.OffsetFetchResponseTopics(name="orders", partitions=[nothing, partition])
        group = OffsetFetchResponse.OffsetFetchResponseGroup("billing", [topic], self._code(node))
        return OffsetFetchResponse(groups=[group])

    def _offsetcommit(self, node: int, request: Any, version: int) -> OffsetCommitResponse:
        code = self._code(node)
        rows = [
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponsePartition(one.partition_index, code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return OffsetCommitResponse(topics=rows)

    def _deletegroups(self, node: int, request: Any, version: int) -> DeleteGroupsResponse:
        rows = [DeleteGroupsResponse.DeletableGroupResult(name, self._code(node)) for name in request.groups_names]
        return DeleteGroupsResponse(results=rows)


@pytest.mark.parametrize(
    "code", [E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR], ids=lambda code: code.name
)
def test_a_coordinator_that_is_not_ready_is_asked_again(code: ErrorCode) -> None:
    cluster = GroupCluster()
    cluster.codes.extend([code, code])
    found = cluster.run(lambda client: Groups(client).offsets("billing"))
    assert found == {ORDERS: GroupOffset(7, -1, "note")}
    assert cluster.asked("OffsetFetch") == [2, 2, 2]
    assert len(cluster.asked("FindCoordinator")) == 3, "it may be another by now"


def test_a_coordinator_that_never_gets_ready_is_given_up_when_time_is_up() -> None:
    cluster = GroupCluster()
    cluster.codes.extend([E.COORDINATOR_LOAD_IN_PROGRESS] * 1_000)
    with pytest.raises(ClientError) as failed:
        cluster.run(lambda client: Groups(client).offsets("billing"))
    assert failed.value.code is E.COORDINATOR_LOAD_IN_PROGRESS
    assert cluster.clock.monotonic() <= 6.0


def test_the_time_in_which_the_coordinator_is_looked_for_counts() -> None:
    cluster = GroupCluster()

    def slow(node: int, request: Any) -> str | None:
        if type(request).__name__ == "FindCoordinatorRequest":
            cluster.clock.stall(4.0)
        return SWALLOW if type(request).__name__ == "DeleteGroupsRequest" else None

    cluster.faults = slow
    deleted = cluster.run(lambda client: Groups(client).delete(["billing"]))
    assert deleted["billing"] is not None and cluster.clock.monotonic() <= 6.0


def test_a_refusal_that_waiting_does_not_better_comes_at_once() -> None:
    cluster = GroupCluster()
    cluster.codes.append(E.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(ClientError, match="GROUP_AUTHORIZATION_FAILED"):
        cluster.run(lambda client: Groups(client).offsets("billing"))
    assert len(cluster.asked("OffsetFetch")) == 1


def test_a_commit_whose_answer_was_lost_is_repeated_and_a_deletion_is_not() -> None:
    cluster = GroupCluster()
    lost: list[str] = []

    def once(node: int, request: Any) -> str | None:
        name = type(request).__name__
        if name in ("OffsetCommitRequest", "DeleteGroupsRequest") and name not in lost:
            lost.append(name)
            return DROP_AFTER
        return None

    cluster.faults = once

    async def scenario(client: Client) -> tuple[Any, Any]:
        groups = Groups(client)
        return await groups.commit("billing", {ORDERS: 3}), await groups.delete(["billing"])

    committed, deleted = cluster.run(scenario)
    assert committed == {ORDERS: None} and cluster.asked("OffsetCommit") == [2, 2]
    assert deleted["billing"].is_outcome_unknown and cluster.asked("DeleteGroups") == [2]


def test_each_partition_of_a_commit_has_its_own_outcome_and_no_member_is_named() -> None:
    cluster = GroupCluster()
    cluster.codes.append(E.UNKNOWN_MEMBER_ID)
    outcome = cluster.run(lambda client: Groups(client).commit("billing", {ORDERS: 3}))[ORDERS]
    assert outcome is not None and outcome.code is E.UNKNOWN_MEMBER_ID
    (request,) = [message for _, message, _ in cluster.requests if type(message).__name__ == "OffsetCommitRequest"]
    assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)


def test_every_broker_is_asked_for_its_groups_and_one_that_loads_again() -> None:
    cluster = GroupCluster(nodes=3)
    cluster.codes.append(E.COORDINATOR_LOAD_IN_PROGRESS)
    found = cluster.run(lambda client: Groups(client).all())
    assert found == [ListedGroup(f"of-{node}", "classic", "Stable", "consumer") for node in (1, 2, 3)]
    assert sorted(cluster.asked("ListGroups"))[-1] == 3 and len(cluster.asked("ListGroups")) == 4


@pytest.mark.parametrize("version", [0, 3, 9])
def test_what_a_classic_consumer_holds_is_read_in_any_version(version: int) -> None:
    cluster = GroupCluster()
    held = ConsumerProtocolAssignment.TopicPartition(topic="orders", partitions=[1, 0])
    body = encoder(ConsumerProtocolAssignment, 0)(ConsumerProtocolAssignment(assigned_partitions=[held]))
    cluster.assignment = version.to_bytes(2, "big") + body + b"more" * (version > 3)
    group = cluster.run(lambda client: Groups(client).describe("billing"))
    assert group is not None and (group.kind, group.assignor, group.coordinator_id) == ("classic", "range", 2)
    (member,) = group.members
    assert member.host == "192.0.2.1" and member.assignment == [ORDERS, TopicPartition("orders", 1)]


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00\x7f\xff\xff\xff", b"\xff" * 20])
def test_an_assignment_that_nobody_can_read_is_none(data: bytes) -> None:
    cluster = GroupCluster()
    cluster.assignment = data
    group = cluster.run(lambda client: Groups(client).describe("billing"))
    assert group is not None and group.members[0].assignment == []


def test_a_group_that_is_not_there_is_none() -> None:
    cluster = GroupCluster()
    cluster.codes.append(E.GROUP_ID_NOT_FOUND)
    assert cluster.run(lambda client: Groups(client).describe("billing")) is None
