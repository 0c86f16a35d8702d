"""A member of a consumer group of the new protocol (KIP-848): the broker assigns, the member acknowledges."""

from __future__ import annotations

import uuid

from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from support.churn.member import (
    COORDINATOR_ERRORS,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    UNKNOWN_MEMBER_ID,
    ChurnMember,
    Scene,
)

JOINING, LEAVING = 0, -1


class ConsumerMember(ChurnMember):
    def __init__(self, name: str, scene: Scene) -> None:
        super().__init__(name, scene)
        self.member_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{scene.group}/{name}"))
        self.epoch = JOINING
        self._said: set[int] | None = None  # what the broker was last told that it owns; None: tell it everything

    async def _live(self) -> None:
        self._said = None
        while not self._leaves:
            await self.pause()
            await self.commit()
            if await self._beat():
                await self.find_positions()
            await self.rest()

    async def _beat(self) -> bool:
        is_full = self._said is None
        owned = set(self.positions)
        lost = self.scene.ledger.has_lost(self.name)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.scene.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=self.scene.rebalance_ms if is_full else -1,
            subscribed_topic_names=[self.scene.topic] if is_full else None,
            topic_partitions=self._partitions(owned) if is_full or owned != self._said else None,
        )
        answer = await self.wire.call(request, 1)
        self.scene.ledger.heard(self.name, lost, is_accepted=answer.error_code == 0)
        if answer.error_code in COORDINATOR_ERRORS:
            self._said = None
            return False
        if answer.error_code:
            if self.epoch == JOINING:
                assert answer.error_code == UNKNOWN_MEMBER_ID, (answer.error_code, answer.error_message)
            else:  # the last: without it, it has become a classic group
                allowed = (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, GROUP_ID_NOT_FOUND)
                assert answer.error_code in allowed, (answer.error_code, answer.error_message)
            self.drop_all()
            self.epoch, self._said, self.is_settled = JOINING, None, False
            return False
        self.epoch, self._said = answer.member_epoch, owned
        if answer.assignment is not None:
            self.hold({at for topic in answer.assignment.topic_partitions for at in topic.partitions})
        self.is_settled = self._said == set(self.positions)
        return True

    def _partitions(self, owned: set[int]) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
        if not owned:
            return []
        return [ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=self.scene.topic_id, partitions=sorted(owned))]

    def _fetch_identity(self) -> dict[str, object]:
        return {"member_id": self.member_id, "member_epoch": self.epoch}

    async def _say_goodbye(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.scene.group, member_id=self.member_id, member_epoch=LEAVING, topic_partitions=[]
        )
        await self.wire.call(request, 1)
