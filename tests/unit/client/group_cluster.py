"""Brokers in memory with a coordinator that says what the test tells it to.

``codes["Heartbeat"]`` and the like: the next answers of that request have these errors; then all goes well. Everything
that requests and callbacks do is noted in ``story``, in order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from headpond.client.consumer_protocol import write_assignment, write_subscription
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from headpond.protocol.schema.find_coordinator import FindCoordinatorResponse
from headpond.protocol.schema.heartbeat import HeartbeatResponse
from headpond.protocol.schema.join_group import JoinGroupResponse
from headpond.protocol.schema.leave_group import LeaveGroupResponse
from headpond.protocol.schema.offset_commit import OffsetCommitResponse
from headpond.protocol.schema.offset_fetch import OffsetFetchResponse
from headpond.protocol.schema.sync_group import SyncGroupResponse
from unit.client.memory_cluster import MemoryCluster

E = ErrorCode
INTERVAL_S = 3.0


def orders(*partitions: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("orders", partition) for partition in partitions)


class GroupCluster(MemoryCluster):
    def __init__(self, nodes: int = 2) -> None:
        super().__init__(nodes)
        self.add_topic("orders", 2)
        self.coordinator = 2
        self.codes: defaultdict[str, deque[ErrorCode]] = defaultdict(deque)
        self.story: list[str] = []
        self.generation = 0
        self.member_ids = 0
        self.leader: str | None = None  # None: whoever joins
        self.others: list[JoinGroupResponse.JoinGroupResponseMember] = []
        self.synced: dict[str, bytes] = {}
        self.targets: deque[list[tuple[bytes, list[int]]] | None] = deque()
        self.epoch = 0

    def noted(self, what: str) -> Callable[[tuple[TopicPartition, ...]], None]:
        """A callback."""
        return lambda partitions: self.story.append(f"{what} {','.join(str(tp.partition) for tp in partitions)}")

    def callbacks(self, **other: Any) -> dict[str, Any]:
        return {f"on_{what}": self.noted(what) for what in ("assigned", "revoked", "lost")} | other

    def told(self, *leave_out: str) -> list[str]:
        return [one for one in self.story if one not in leave_out]

    def _code(self, node: int, name: str) -> ErrorCode:
        if self.codes[name]:
            return self.codes[name].popleft()
        return E.NONE if node == self.coordinator else E.NOT_COORDINATOR

    def _findcoordinator(self, node: int, request: Any, version: int) -> FindCoordinatorResponse:
        (key,) = request.coordinator_keys
        found = FindCoordinatorResponse.Coordinator(key=key, node_id=self.coordinator, host="b", port=self.coordinator)
        return FindCoordinatorResponse(coordinators=[found])

    # ---- classic

    def _joingroup(self, node: int, request: Any, version: int) -> JoinGroupResponse:
        self.story.append("JoinGroup")
        if code := self._code(node, "JoinGroup"):
            return JoinGroupResponse(error_code=code, member_id=request.member_id)
        if not request.member_id and request.group_instance_id is None:
            self.member_ids += 1
            return JoinGroupResponse(error_code=E.MEMBER_ID_REQUIRED, member_id=f"member-{self.member_ids}")
        member_id = request.member_id or f"{request.group_instance_id}-1"
        self.generation += 1
        leader = self.leader or member_id
        own = JoinGroupResponse.JoinGroupResponseMember(
            member_id, request.group_instance_id, bytes(request.protocols[0].metadata)
        )
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader=leader,
            member_id=member_id,
            members=[own, *self.others] if leader == member_id else [],
        )

    def add_other(self, member_id: str, topics: Iterable[str], instance_id: str | None = None) -> None:
        row = JoinGroupResponse.JoinGroupResponseMember(member_id, instance_id, write_subscription(topics))
        self.others.append(row)

    def _syncgroup(self, node: int, request: Any, version: int) -> SyncGroupResponse:
        self.story.append("SyncGroup")
        if code := self._code(node, "SyncGroup"):
            return SyncGroupResponse(error_code=code)
        self.synced.update({one.member_id: bytes(one.assignment) for one in request.assignments})
        return SyncGroupResponse(assignment=self.synced.get(request.member_id, write_assignment([])))

    def _heartbeat(self, node: int, request: Any, version: int) -> HeartbeatResponse:
        self.story.append("Heartbeat")
        return HeartbeatResponse(error_code=self._code(node, "Heartbeat"))

    def _leavegroup(self, node: int, request: Any, version: int) -> LeaveGroupResponse:
        self.story.append("LeaveGroup")
        return LeaveGroupResponse(error_code=self._code(node, "LeaveGroup"))

    # ---- KIP-848

    def assign(self, *partitions: int, topic: str = "orders") -> None:
        """With the next heartbeat's answer."""
        self.targets.append([(self.topic_ids[topic], list(partitions))])

    def _consumergroupheartbeat(self, node: int, request: Any, version: int) -> ConsumerGroupHeartbeatResponse:
        owned = request.topic_partitions
        said = "" if owned is None else " owns " + ",".join(str(at) for topic in owned for at in topic.partitions)
        self.story.append(f"epoch {request.member_epoch}{said}")
        if code := self._code(node, "ConsumerGroupHeartbeat"):
            return ConsumerGroupHeartbeatResponse(error_code=code, error_message=code.name)
        if request.member_epoch < 0:
            return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=self.epoch, heartbeat_interval_ms=int(INTERVAL_S * 1_000)
        )
        target = self.targets.popleft() if self.targets else None
        if target is not None:
            self.epoch += 1
            response.member_epoch = self.epoch
            response.assignment = ConsumerGroupHeartbeatResponse.Assignment(
                [ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id, numbers) for topic_id, numbers in target]
            )
        return response

    # ---- offsets

    def _offsetcommit(self, node: int, request: Any, version: int) -> OffsetCommitResponse:
        self.story.append("OffsetCommit")
        code = self._code(node, "OffsetCommit")
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

    def _offsetfetch(self, node: int, request: Any, version: int) -> OffsetFetchResponse:
        rows = [
            OffsetFetchResponse.OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartitions(index, 7 if index == 0 else -1)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.groups[0].topics
        ]
        group = OffsetFetchResponse.OffsetFetchResponseGroup("billing", rows, self._code(node, "OffsetFetch"))
        return OffsetFetchResponse(groups=[group])
