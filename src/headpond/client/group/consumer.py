"""A member of a consumer group (KIP-848): one ConsumerGroupHeartbeat for everything; the coordinator assigns.

Heartbeat      The first, and each after one without an answer, says everything: subscription, time-outs, what is owned.
               The others say what has changed. The id is the member's own, so that a join whose answer was lost can be
               repeated.
Assignment     An answer that holds one is the new target. What is not in it is revoked, what is new is owned, and the
               next heartbeat, sent at once, says what is owned now: that is the acknowledgement.
               A topic is assigned by its id; until its name is known, its partitions are not owned.
Refusals       FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND: lost, join again with epoch 0 ·
               FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID and all others: fatal
Leaving        Epoch -1; -2 of a static member (``instance_id``), whose partitions wait for it until the session ends.
Not done       Subscriptions by regular expression, racks.
"""

from __future__ import annotations

from collections.abc import Mapping

from headpond.client.errors import ClientError
from headpond.client.group.member import Member
from headpond.client.group.offsets import Identity
from headpond.client.routing import topics_of
from headpond.model import ErrorCode, TopicPartition
from headpond.model.ids import id_text
from headpond.ports import Random
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headpond.protocol.types import Message

JOINING = 0
LEFT, LEFT_FOR_NOW = -1, -2
REMOVED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


class ConsumerMember(Member):
    NO_EPOCH = JOINING

    _target: dict[tuple[bytes, int], None]  # topic ids and partitions, in order
    _told: dict[TopicPartition, bytes] | None = None  # what the coordinator was told is owned; None: tell it everything

    async def _live(self) -> None:
        self.member_id = self.member_id or new_member_id(self._client.random)
        self.epoch = JOINING
        self._told = None
        self._target = {}
        while self._is_in_or_joining:
            await self._beat()
            if self._is_in_or_joining and not await self._has_reconciled():
                await self._rest()
        await self._lose()

    @property
    def _is_in_or_joining(self) -> bool:
        return self.failure is None and (self._session.is_alive or self.epoch == JOINING)

    # ---- heartbeats

    async def _beat(self) -> bool:
        sent_s = self._client.clock.monotonic()
        owned = dict(self._owned)
        request = self._heartbeat(owned)
        self._told = None  # until an answer says that it got there
        response = await self._ask_heartbeat(request)
        if response is None:
            return False
        code = response.error_code
        if code in REMOVED:
            self._session.end()
            self._beat_after(self._backoff.next_s())
            return False
        if code:
            self._refused(code, response.error_message)
            return False
        self._told = owned
        self._beat_after(response.heartbeat_interval_ms / 1_000)
        if response.assignment is not None:
            rows = response.assignment.topic_partitions
            target = sorted((topic.topic_id, partition) for topic in rows for partition in topic.partitions)
            self._target = dict.fromkeys(target)
        if self.epoch == JOINING:
            self._session.begin(sent_s)
        else:
            self._session.heard(sent_s, is_settled=not self._superfluous())
        self.member_id, self.epoch = response.member_id or self.member_id, response.member_epoch
        return True

    def _heartbeat(self, owned: Mapping[TopicPartition, bytes]) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if self._told is None:
            request.rebalance_timeout_ms = self._settings.rebalance_timeout_ms
            request.subscribed_topic_names = self._topics
            request.server_assignor = self._settings.server_assignor
        if self._told != owned:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(owned[tps[0]], [tp.partition for tp in tps])
                for tps in topics_of(sorted(owned)).values()
            ]
        return request

    def _fetch_identity(self) -> Identity | None:
        return Identity(self.member_id, self.epoch, self.instance_id)

    # ---- towards the target

    async def _has_reconciled(self) -> bool:
        """Something was revoked or assigned, which the coordinator has to know."""
        if revoked := self._superfluous():
            await self._revoke(revoked)
        names = await self._names()
        added = {
            TopicPartition(names[topic_id], partition): topic_id
            for topic_id, partition in self._target
            if topic_id in names and TopicPartition(names[topic_id], partition) not in self._owned
        }
        if added and self._session.is_alive:
            await self._own(added)
        return bool(revoked or added)

    def _superfluous(self) -> tuple[TopicPartition, ...]:
        """What is owned and not in the target; compared by the ids of topics, for one may have been made anew."""
        return tuple(tp for tp in sorted(self._owned) if (self._owned[tp], tp.partition) not in self._target)

    async def _names(self) -> dict[bytes, str]:
        """Of the subscribed topics, by id. A name that is not learned now is asked for after the next heartbeat."""
        names = self._known_names()
        if all(topic_id in names for topic_id, _ in self._target):
            return names
        try:
            await self._client.metadata(self._topics, min(self._patience_s, self._due_s))
        except ClientError as error:
            if not error.is_retriable:
                self._fail(error)
        return self._known_names()

    def _known_names(self) -> dict[bytes, str]:
        topics = [self._client.cluster.topic(name) for name in self._topics]
        return {topic.topic_id: topic.name for topic in topics if topic is not None}

    # ---- out of the group

    def _farewell(self) -> Message | None:
        if not self.member_id:
            return None
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=LEFT if self.instance_id is None else LEFT_FOR_NOW,
            instance_id=self.instance_id,
        )


def new_member_id(random: Random) -> str:
    """As Kafka's clients make them: 22 characters that command lines don't take for an option."""
    while True:
        text = id_text(random.random_bytes(16))
        if not text.startswith("-"):
            return text
