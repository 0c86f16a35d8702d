"""What the doors of a partition's consumer groups share: the groups, the ports, and how members are removed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.consumer import conversion, fencing
from headpond.coordination.groups.consumer.group import ConsumerGroup, Draft
from headpond.coordination.groups.consumer.heartbeat import Moment
from headpond.coordination.groups.consumer.member import Member
from headpond.coordination.groups.consumer.sessions import Sessions, Timeout
from headpond.coordination.groups.consumer.topics import TopicsView
from headpond.coordination.groups.deadline import NOTHING, WriteSoon
from headpond.coordination.groups.group import Group
from headpond.coordination.runtime import Decision
from headpond.model import BrokerError, ErrorCode
from headpond.model.ids import id_text
from headpond.ports import Clock, Random

_log = logging.getLogger(__name__)

A = TypeVar("A")


class Shared:
    def __init__(
        self,
        groups: dict[str, Group],
        settings: Callable[[], GroupSettings],
        clock: Clock,
        random: Random,
        write_soon: WriteSoon,
        topics: Callable[[], TopicsView],
    ) -> None:
        self.groups = groups
        self.settings = settings
        self.clock = clock
        self.write_soon = write_soon
        self.topics = topics
        self.sessions = Sessions(clock, write_soon, self._expire)
        self._random = random

    def now(self) -> Moment:
        return Moment(self.settings(), self.topics(), self.clock.now_ms())

    def all(self) -> list[ConsumerGroup]:
        return [group for group in self.groups.values() if isinstance(group, ConsumerGroup)]

    def require(self, group_id: str) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def new_member_id(self) -> str:
        """As Kafka makes them: 22 characters that command lines don't take for an option."""
        while True:
            text = id_text(self._random.random_bytes(16))
            if not text.startswith("-"):
                return text

    def looked_at_topics(self, group: Group | None, draft: Draft) -> None:
        """Nothing to write about them; where there was, replaying it says the same."""
        if isinstance(group, ConsumerGroup) and draft.group.epoch == group.epoch:
            group.metadata_is_due = False

    # --- removing members

    def remove(self, group: ConsumerGroup, members: Sequence[Member], answer: A, moment: Moment) -> Decision[A]:
        if not members:
            return Decision(answer)
        gone = [member.member_id for member in members]
        if conversion.can_downgrade(group, gone, moment.settings):
            return Decision(answer, conversion.downgrade(group, gone, moment.topics, moment.now_ms))
        draft = Draft(group)
        fencing.remove_members(draft, members, moment.topics)
        return Decision(answer, draft.records)

    def _expire(self, group_id: str, member_id: str, kind: Timeout) -> Decision[None]:
        group = self.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(group, ConsumerGroup) or member is None:
            self.sessions.forget(group_id, member_id)  # it never came to be: its first records were not written
            return NOTHING
        _log.info("member %s of group %s is fenced: %s", member_id, group_id, kind.value)
        return self.remove(group, [member], None, self.now())

    # --- sessions

    def session_timeout_ms(self, group: ConsumerGroup, member: Member) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self.settings().session_timeout_ms(group.group_id)

    def put_off_session(self, group: ConsumerGroup, member: Member) -> None:
        timeout_ms = self.session_timeout_ms(group, member)
        self.sessions.put_off(Timeout.SESSION, group.group_id, member.member_id, timeout_ms)

    def expect_join(self, group: ConsumerGroup, member: Member) -> None:
        """Of a classic member, which has just been told."""
        self.sessions.start(Timeout.JOIN, group.group_id, member.member_id, member.rebalance_timeout_ms)
