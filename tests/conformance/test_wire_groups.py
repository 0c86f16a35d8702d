"""Groups on the wire: each API in each of its versions, and what is refused. True of Apache Kafka 4.3 as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headpond.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headpond.protocol.schema.delete_groups import DeleteGroupsRequest
from headpond.protocol.schema.describe_groups import DescribeGroupsRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.leave_group import LeaveGroupRequest
from headpond.protocol.schema.list_groups import ListGroupsRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest
from support.verbs import Topic, create_topic
from support.waiting import eventually
from support.wire import Wire

OK = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_METADATA_TOO_LARGE = 12
LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
MEMBER_ID_REQUIRED = 79
UNKNOWN_TOPIC_ID = 100
FENCED_MEMBER_EPOCH = 110

COMMIT_BY_ID = FETCH_BY_ID = 10
SEVERAL_GROUPS = 8
Connect = Callable[..., Wire]


@pytest.fixture(autouse=True)
def coordinated(wire: Wire, topic_name: str) -> None:
    """The group topic exists, and the coordinator of this test's group has loaded it."""
    request = FindCoordinatorRequest(coordinator_keys=[topic_name])
    eventually(lambda: wire.call(request, 4).coordinators[0].error_code == OK)
    eventually(lambda: fetch(wire, topic_name, None, version=8).error_code == OK)
    eventually(lambda: wire.call(ListGroupsRequest(), 4).error_code == OK)


@pytest.fixture
def group(topic_name: str) -> str:
    return topic_name


def commit(
    wire: Wire,
    group: str,
    topic: Topic,
    offsets: dict[int, int],
    *,
    version: int = 9,
    generation: int = -1,
    member_id: str = "",
    metadata: str | None = "note",
    leader_epoch: int = -1,
) -> dict[int, int]:
    """Error codes by partition."""
    named: dict[str, Any] = {"topic_id": topic.id} if version >= COMMIT_BY_ID else {"name": topic.name}
    rows = [
        OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata,
            committed_leader_epoch=leader_epoch,
        )
        for index, offset in offsets.items()
    ]  # fmt: skip
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(partitions=rows, **named)],
    )
    (answered,) = wire.call(request, version).topics
    assert (answered.topic_id == topic.id) if version >= COMMIT_BY_ID else (answered.name == topic.name)
    return {row.partition_index: row.error_code for row in answered.partitions}


def fetch(wire: Wire, group: str, topics: dict[Topic, list[int]] | None, *, version: int = 9, **more: Any) -> Any:
    """The group's part of the answer; of versions before 8 the whole of it, which looks the same."""
    if version < SEVERAL_GROUPS:
        old = [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic.name, partition_indexes=indexes)
            for topic, indexes in (topics or {}).items()
        ]
        return wire.call(OffsetFetchRequest(group_id=group, topics=None if topics is None else old, **more), version)
    return wire.call(OffsetFetchRequest(groups=[fetch_group(group, topics, version)], **more), version).groups[0]


def fetch_group(group: str, topics: dict[Topic, list[int]] | None, version: int) -> Any:
    new = []
    for topic, indexes in (topics or {}).items():
        named: dict[str, Any] = {"topic_id": topic.id} if version >= FETCH_BY_ID else {"name": topic.name}
        new.append(OffsetFetchRequest.OffsetFetchRequestTopics(partition_indexes=indexes, **named))
    return OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None if topics is None else new)


def rows_of(fetched: Any) -> dict[int, tuple[int, str, int]]:
    return {
        row.partition_index: (row.committed_offset, row.metadata, row.error_code)
        for topic in fetched.topics
        for row in topic.partitions
    }


# --- offsets


@pytest.mark.parametrize("version", range(2, 11))
def test_an_offset_that_was_committed_is_fetched_in_every_version(
    wire: Wire, topic: Topic, group: str, version: int
) -> None:
    leader_epoch = 0 if version >= 6 else -1
    assert commit(wire, group, topic, {0: 42}, version=version, leader_epoch=leader_epoch) == {0: OK}
    for fetch_version in range(1, 11):
        fetched = fetch(wire, group, {topic: [0, 7]}, version=fetch_version)
        assert rows_of(fetched) == {0: (42, "note", OK), 7: (-1, "", OK)}
        if fetch_version >= 5:
            assert fetched.topics[0].partitions[0].committed_leader_epoch == leader_epoch
        if fetch_version >= 2:
            everything = fetch(wire, group, None, version=fetch_version)
            assert rows_of(everything) == {0: (42, "note", OK)}
            by_id = fetch_version >= FETCH_BY_ID
            assert (everything.topics[0].topic_id == topic.id) if by_id else (everything.topics[0].name == topic.name)


def test_a_group_that_was_never_seen_has_no_offsets_and_that_is_no_error(wire: Wire, topic: Topic, group: str) -> None:
    for version in range(1, 11):
        assert rows_of(fetch(wire, group, {topic: [0]}, version=version)) == {0: (-1, "", OK)}
    for version in range(2, 11):
        fetched = fetch(wire, group, None, version=version)
        assert (fetched.topics, fetched.error_code) == ([], OK)


def test_several_groups_are_asked_for_at_once(wire: Wire, topic: Topic, group: str) -> None:
    commit(wire, group, topic, {0: 1})
    commit(wire, group + "-b", topic, {0: 2})
    for version in range(8, 11):
        groups = [fetch_group(name, {topic: [0]}, version) for name in (group, group + "-b", group + "-c")]
        answer = wire.call(OffsetFetchRequest(groups=groups, require_stable=True), version)
        found = {each.group_id: rows_of(each)[0][0] for each in answer.groups}
        assert found == {group: 1, group + "-b": 2, group + "-c": -1}


def test_partitions_that_do_not_exist_are_refused_and_their_neighbours_committed(wire: Wire, group: str) -> None:
    topic = create_topic(wire, group, partitions=2)
    for version in (2, 9, 10):
        codes = commit(wire, group, topic, {0: 1, 2: 1, 1: 1, -1: 1}, version=version)
        assert codes == {0: OK, 1: OK, 2: UNKNOWN_TOPIC_OR_PARTITION, -1: UNKNOWN_TOPIC_OR_PARTITION}


def test_topics_that_do_not_exist_are_refused(wire: Wire, topic: Topic, group: str) -> None:
    nobody = Topic("nobody-" + group, b"\x07" * 16)
    assert commit(wire, group, nobody, {0: 1}, version=9) == {0: UNKNOWN_TOPIC_OR_PARTITION}
    assert commit(wire, group, nobody, {0: 1}, version=10) == {0: UNKNOWN_TOPIC_ID}
    assert rows_of(fetch(wire, group, {nobody: [0]}, version=9)) == {0: (-1, "", OK)}
    assert rows_of(fetch(wire, group, {nobody: [0], topic: [0]}, version=10))[0][2] in (OK, UNKNOWN_TOPIC_ID)
    (unknown,) = fetch(wire, group, {nobody: [0]}, version=10).topics
    assert unknown.topic_id == nobody.id
    assert unknown.partitions[0].error_code == UNKNOWN_TOPIC_ID


def test_metadata_has_a_limit(wire: Wire, topic: Topic, group: str) -> None:
    assert commit(wire, group, topic, {0: 1}, metadata="x" * 4096) == {0: OK}
    assert commit(wire, group, topic, {0: 2}, metadata="x" * 4097) == {0: OFFSET_METADATA_TOO_LARGE}
    assert commit(wire, group, topic, {0: 3}, metadata=None) == {0: OK}
    assert rows_of(fetch(wire, group, {topic: [0]})) == {0: (3, "", OK)}


def test_a_member_of_a_group_that_is_not_there_can_not_commit(wire: Wire, topic: Topic, group: str) -> None:
    for version in range(2, 11):
        code = GROUP_ID_NOT_FOUND if version >= 9 else ILLEGAL_GENERATION
        assert commit(wire, group, topic, {0: 1}, version=version, generation=1, member_id="m") == {0: code}


def test_deleted_offsets_are_gone(wire: Wire, group: str) -> None:
    topic = create_topic(wire, group, partitions=2)
    commit(wire, group, topic, {0: 1, 1: 2})

    def delete(group_id: str, name: str, *partitions: int) -> Any:
        rows = [OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
        asked = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=name, partitions=rows)
        return wire.call(OffsetDeleteRequest(group_id=group_id, topics=[asked]), 0)

    answer = delete(group, topic.name, 0, 5)
    codes = {row.partition_index: row.error_code for row in answer.topics[0].partitions}
    assert codes == {0: OK, 5: UNKNOWN_TOPIC_OR_PARTITION}
    assert rows_of(fetch(wire, group, {topic: [0, 1]})) == {0: (-1, "", OK), 1: (2, "note", OK)}
    assert delete(group, "nobody-" + group, 0).topics[0].partitions[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert delete("nobody-" + group, topic.name, 0).error_code == GROUP_ID_NOT_FOUND
    assert delete("", topic.name, 0).error_code == INVALID_GROUP_ID


# --- listing, describing, deleting


def test_a_simple_group_is_listed_described_and_deleted_in_every_version(wire: Wire, topic: Topic, group: str) -> None:
    for version in range(6):
        commit(wire, group, topic, {0: 1})
        (listed,) = [each for each in wire.call(ListGroupsRequest(), version).groups if each.group_id == group]
        assert listed.protocol_type == ""
        assert listed.group_state == ("Empty" if version >= 4 else "")
        assert listed.group_type == ("classic" if version >= 5 else "")
        described = wire.call(DescribeGroupsRequest(groups=[group]), version).groups[0]
        assert (described.error_code, described.group_state, described.members) == (OK, "Empty", [])
        deleted = wire.call(DeleteGroupsRequest(groups_names=[group, group]), min(version, 2)).results
        assert [(each.group_id, each.error_code) for each in deleted] == [(group, OK)]
        assert rows_of(fetch(wire, group, None)) == {}
        (again,) = wire.call(DeleteGroupsRequest(groups_names=[group]), min(version, 2)).results
        assert again.error_code == GROUP_ID_NOT_FOUND


def test_groups_are_filtered_by_state_and_type(wire: Wire, topic: Topic, group: str) -> None:
    commit(wire, group, topic, {0: 1})

    def is_listed(**filters: Any) -> bool:
        return group in [each.group_id for each in wire.call(ListGroupsRequest(**filters), 5).groups]

    assert is_listed(states_filter=["Empty"])
    assert is_listed(states_filter=["stable", "eMPTY"], types_filter=["CLASSIC"])
    assert not is_listed(states_filter=["Stable"])
    assert not is_listed(states_filter=["Asleep"])
    assert not is_listed(types_filter=["consumer"])
    assert not is_listed(types_filter=["unheard of"])


def test_a_group_that_is_not_there_is_dead(wire: Wire, group: str) -> None:
    for version in range(7):
        described = wire.call(DescribeGroupsRequest(groups=[group]), version).groups[0]
        assert (described.group_id, described.group_state) == (group, "Dead")
        if version >= 6:
            assert described.error_code == GROUP_ID_NOT_FOUND
            assert described.error_message == f"Group {group} not found."
        else:
            assert described.error_code == OK


def test_operations_are_described_when_asked_for(wire: Wire, topic: Topic, group: str) -> None:
    commit(wire, group, topic, {0: 1})
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    assert wire.call(request, 5).groups[0].authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    assert wire.call(DescribeGroupsRequest(groups=[group]), 5).groups[0].authorized_operations == -2_147_483_648


# --- classic members


def join_request(group: str, member_id: str = "", *, version: int = 5, protocols: tuple[str, ...] = ("range",)) -> Any:
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000 if version >= 1 else -1,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=b"meta") for name in protocols],
    )


def send_join(wire: Wire, group: str, member_id: str = "", *, version: int = 5) -> None:
    """With the id that the broker gives, where it asks for one."""
    if version >= 4 and not member_id:
        refused = wire.call(join_request(group, version=version), version)
        assert refused.error_code == MEMBER_ID_REQUIRED
        member_id = refused.member_id
    wire.send(join_request(group, member_id, version=version), version)


def received_join(wire: Wire) -> Any:
    _, joined = wire.receive()
    assert joined.error_code == OK, joined
    return joined


def sync(wire: Wire, group: str, joined: Any, assignments: dict[str, bytes], *, version: int = 3) -> Any:
    rows = [SyncGroupRequest.SyncGroupRequestAssignment(member, data) for member, data in assignments.items()]
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    return wire.call(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=rows,
            **named,
        ),
        version,
    )


def beat(wire: Wire, group: str, joined: Any, *, version: int = 3) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
    code: int = wire.call(request, version).error_code
    return code


def leave(wire: Wire, group: str, member_id: str, *, version: int = 3) -> int:
    if version < 3:
        code: int = wire.call(LeaveGroupRequest(group_id=group, member_id=member_id), version).error_code
        return code
    members = [LeaveGroupRequest.MemberIdentity(member_id=member_id)]
    answer = wire.call(LeaveGroupRequest(group_id=group, members=members), version)
    assert answer.error_code == OK
    return int(answer.members[0].error_code)


def test_a_members_life_in_every_version(connect: Connect, topic: Topic, group: str) -> None:
    """All at once: each of these groups waits for more members at first."""
    members = [(version, connect(), f"{group}-{version}") for version in range(10)]
    for version, wire, name in members:
        send_join(wire, name, version=version)
    for version, wire, name in members:
        joined = received_join(wire)
        assert (joined.generation_id, joined.leader, joined.protocol_name) == (1, joined.member_id, "range")
        assert joined.protocol_type == ("consumer" if version >= 7 else None)
        assert [(each.member_id, each.metadata) for each in joined.members] == [(joined.member_id, b"meta")]
        sync_version, beat_version, leave_version = min(version, 5), min(version, 4), min(version, 5)
        assert commit(wire, name, topic, {0: 9}, generation=1, member_id=joined.member_id) == {0: REBALANCE_IN_PROGRESS}
        synced = sync(wire, name, joined, {joined.member_id: b"all of it"}, version=sync_version)
        assert (synced.error_code, synced.assignment) == (OK, b"all of it")
        assert synced.protocol_name == ("range" if sync_version >= 5 else None)
        assert beat(wire, name, joined, version=beat_version) == OK
        for commit_version in range(2, 11):
            codes = commit(wire, name, topic, {0: 7}, generation=1, member_id=joined.member_id, version=commit_version)
            assert codes == {0: OK}
        assert commit(wire, name, topic, {0: 9}, generation=0, member_id=joined.member_id) == {0: ILLEGAL_GENERATION}
        assert commit(wire, name, topic, {0: 9}, generation=1, member_id="somebody") == {0: UNKNOWN_MEMBER_ID}
        assert commit(wire, name, topic, {0: 9}) == {0: UNKNOWN_MEMBER_ID}
        described = wire.call(DescribeGroupsRequest(groups=[name]), min(version, 6)).groups[0]
        assert (described.group_state, described.protocol_type, described.protocol_data) == (
            "Stable",
            "consumer",
            "range",
        )
        (member,) = described.members
        assert (member.member_id, member.client_id, member.member_metadata, member.member_assignment) == (
            joined.member_id,
            "wire",
            b"meta",
            b"all of it",
        )
        assert member.client_host.startswith("/")
        assert wire.call(DeleteGroupsRequest(groups_names=[name]), 2).results[0].error_code == NON_EMPTY_GROUP
        assert leave(wire, name, joined.member_id, version=leave_version) == OK
        assert leave(wire, name, joined.member_id, version=leave_version) == UNKNOWN_MEMBER_ID
        assert beat(wire, name, joined, version=beat_version) == UNKNOWN_MEMBER_ID
        assert rows_of(fetch(wire, name, {topic: [0]})) == {0: (7, "note", OK)}
        assert wire.call(DeleteGroupsRequest(groups_names=[name]), 2).results[0].error_code == OK


def test_a_second_member_makes_the_first_join_again(connect: Connect, topic: Topic, group: str) -> None:
    one, two = connect(), connect()
    send_join(one, group)
    first = received_join(one)
    assert sync(one, group, first, {first.member_id: b"everything"}).error_code == OK
    send_join(two, group)
    eventually(lambda: beat(one, group, first) == REBALANCE_IN_PROGRESS)
    assert commit(one, group, topic, {0: 5}, generation=1, member_id=first.member_id) == {0: OK}
    send_join(one, group, first.member_id)
    first, second = received_join(one), received_join(two)
    assert (first.generation_id, second.generation_id) == (2, 2)
    assert {each.member_id for each in first.members} == {first.member_id, second.member_id}
    assert (second.leader, second.members) == (first.member_id, [])
    request = SyncGroupRequest(group_id=group, generation_id=2, member_id=second.member_id)
    two.send(request, 3)  # waits for the leader
    assert sync(one, group, first, {first.member_id: b"left", second.member_id: b"right"}).assignment == b"left"
    assert two.receive()[1].assignment == b"right"
    assert beat(one, group, first) == beat(two, group, second) == OK
    assert leave(two, group, second.member_id) == OK
    assert beat(one, group, first) == REBALANCE_IN_PROGRESS


def test_what_a_group_refuses(wire: Wire, group: str) -> None:
    assert wire.call(join_request(""), 5).error_code == INVALID_GROUP_ID
    for session_ms in (5_999, 1_800_001):
        request = join_request(group)
        request.session_timeout_ms = session_ms
        assert wire.call(request, 5).error_code == INVALID_SESSION_TIMEOUT
    assert wire.call(join_request(group, "a stranger"), 5).error_code == UNKNOWN_MEMBER_ID
    assert wire.call(join_request(group, protocols=()), 3).error_code == INCONSISTENT_GROUP_PROTOCOL
    for version in range(5):
        request = HeartbeatRequest(group_id=group, generation_id=1, member_id="a stranger")
        assert wire.call(request, version).error_code == UNKNOWN_MEMBER_ID
        assert wire.call(HeartbeatRequest(), version).error_code == INVALID_GROUP_ID
    for version in range(6):
        named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
        request = SyncGroupRequest(group_id=group, generation_id=1, member_id="a stranger", **named)
        assert wire.call(request, version).error_code == UNKNOWN_MEMBER_ID
        assert wire.call(SyncGroupRequest(**named), version).error_code == INVALID_GROUP_ID
        assert leave(wire, group, "a stranger", version=version) == UNKNOWN_MEMBER_ID
        assert wire.call(LeaveGroupRequest(), version).error_code == INVALID_GROUP_ID
    nameless = SyncGroupRequest(group_id=group, generation_id=1, member_id="m")
    assert wire.call(nameless, 5).error_code == INCONSISTENT_GROUP_PROTOCOL


# --- members of consumer groups


def consumer_beat(wire: Wire, group: str, member_id: str, epoch: int, *, version: int = 1, **more: Any) -> Any:
    return wire.call(
        ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch, **more), version
    )


@pytest.mark.parametrize("version", range(2))
def test_a_consumers_life_in_every_version(wire: Wire, topic: Topic, group: str, version: int) -> None:
    joined = consumer_beat(
        wire, group, "" if version == 0 else "me", 0,
        version=version, rebalance_timeout_ms=30_000, subscribed_topic_names=[topic.name], topic_partitions=[],
    )  # fmt: skip
    assert joined.error_code == OK, joined
    member_id, epoch = joined.member_id, joined.member_epoch
    (assigned,) = joined.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (topic.id, [0])
    assert joined.heartbeat_interval_ms == 5_000
    assert consumer_beat(wire, group, member_id, epoch, version=version).assignment is None
    for commit_version in (9, 10):
        codes = commit(wire, group, topic, {0: 3}, generation=epoch, member_id=member_id, version=commit_version)
        assert codes == {0: OK}
    described = wire.call(ConsumerGroupDescribeRequest(group_ids=[group]), version).groups[0]
    assert (described.error_code, described.group_state, described.group_epoch) == (OK, "Stable", epoch)
    (member,) = described.members
    assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [(topic.name, [0])]
    classic = wire.call(DescribeGroupsRequest(groups=[group]), 5).groups[0]
    assert (classic.error_code, classic.group_state) == (OK, "Dead")
    listed = wire.call(ListGroupsRequest(types_filter=["consumer"]), 5).groups
    assert (group, "consumer", "Stable", "consumer") in [
        (each.group_id, each.protocol_type, each.group_state, each.group_type) for each in listed
    ]
    assert wire.call(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code == NON_EMPTY_GROUP
    assert consumer_beat(wire, group, member_id, epoch + 5, version=version).error_code == FENCED_MEMBER_EPOCH
    assert consumer_beat(wire, group, member_id, -1, version=version).member_epoch == -1
    assert consumer_beat(wire, group, member_id, epoch, version=version).error_code == UNKNOWN_MEMBER_ID
    assert rows_of(fetch(wire, group, {topic: [0]})) == {0: (3, "note", OK)}
    assert wire.call(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code == OK
    gone = wire.call(ConsumerGroupDescribeRequest(group_ids=[group]), version).groups[0]
    assert gone.error_code == GROUP_ID_NOT_FOUND
