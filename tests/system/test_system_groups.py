"""Groups and a broker that stops: who waits is told to look for another coordinator, and what was answered is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.list_groups import ListGroupsRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from support.broker import BrokerProcess
from support.verbs import create_topic
from support.waiting import eventually
from support.wire import ConnectionClosed, Wire

NOT_COORDINATOR = 16
LONG_MS = 60_000


def coordinated(wire: Wire) -> None:
    found = wire.call(FindCoordinatorRequest(coordinator_keys=["readers"]), 4).coordinators[0]
    assert found.error_code == 0  # made while we waited
    eventually(lambda: wire.call(ListGroupsRequest(), 4).error_code == 0)


def commit(wire: Wire, group: str, offset: int) -> int:
    row = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="letters", partitions=[row])
    code: int = wire.call(OffsetCommitRequest(group_id=group, topics=[topic]), 9).topics[0].partitions[0].error_code
    return code


def committed(wire: Wire, group: str) -> int:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name="letters", partition_indexes=[0])
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
    found = wire.call(OffsetFetchRequest(groups=[asked]), 9).groups[0]
    assert found.error_code == 0
    offset: int = found.topics[0].partitions[0].committed_offset
    return offset


def test_a_parked_join_is_answered_when_the_broker_stops(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"group.initial.rebalance.delay.ms": LONG_MS}).start()
    with Wire(broker.bootstrap_servers) as wire:
        coordinated(wire)
        protocols = [JoinGroupRequest.JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest(
            group_id="readers",
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=LONG_MS,
            protocol_type="consumer",
            protocols=protocols,
        )
        wire.send(request, 3)
        wire.assert_silent()
        broker.stop()
        assert wire.receive()[1].error_code == NOT_COORDINATOR


def test_acknowledged_commits_survive_a_stop_and_a_kill_in_the_middle_of_them(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, "letters")
        coordinated(wire)
    acknowledged: dict[str, int] = {}

    def commit_on(group: str) -> None:
        with Wire(broker.bootstrap_servers) as wire:
            offset = acknowledged.get(group, 0)
            try:
                while commit(wire, group, offset + 1) == 0:
                    offset += 1
                    acknowledged[group] = offset
            except (ConnectionClosed, OSError):
                return

    for end in (broker.kill, broker.stop, broker.kill):
        before = sum(acknowledged.values())
        members = [threading.Thread(target=commit_on, args=(f"group-{number}",)) for number in range(8)]
        for member in members:
            member.start()
        eventually(lambda before=before: sum(acknowledged.values()) > before + 200)  # type: ignore[misc]
        end()
        for member in members:
            member.join()
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            eventually(lambda: wire.call(ListGroupsRequest(), 4).error_code == 0)
            for group, offset in acknowledged.items():
                # The next one may have been written and not answered any more.
                assert committed(wire, group) in (offset, offset + 1)
                acknowledged[group] = committed(wire, group)
