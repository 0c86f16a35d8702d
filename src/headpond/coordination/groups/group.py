"""What the rest of the coordinator asks of a group, classic or new (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headpond.coordination.records import CoordinatorRecord
from headpond.model import ZERO_TOPIC_ID, TopicId


class CommittedPartition(NamedTuple):
    topic: str
    partition: int
    topic_id: TopicId = ZERO_TOPIC_ID
    """Zero where the request named the topic."""


class Group(Protocol):
    group_id: str

    @property
    def kind(self) -> str:
        """ "classic" or "consumer", as ListGroups says it."""

    @property
    def state(self) -> str:
        """As DescribeGroups, ConsumerGroupDescribe and ListGroups say it: "Empty", "Stable", ..."""

    @property
    def protocol_type(self) -> str:
        """As ListGroups says it: "consumer", "connect", ...; "" where no member ever joined."""

    @property
    def is_empty(self) -> bool:
        """No member is in it: its offsets may expire, and it may be deleted."""

    def check_commit(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        request_version: int,
        partitions: Sequence[CommittedPartition] = (),
    ) -> None:
        """Raise ``BrokerError`` (model) if this member may not commit offsets now, which refuses the whole request.

        ``partitions``: what it wants to commit. A member of a consumer group whose epoch has just moved on may still
        commit for what it has held since before (KIP-1251); without them, only the present epoch will do.
        """

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """Likewise for OffsetFetch v9 and later, which names the member."""

    def check_delete(self) -> None:
        """Raise NON_EMPTY_GROUP while somebody is in it."""

    def check_delete_offsets(self) -> None:
        """Raise what OffsetDelete answers for the whole group in this state, if anything."""

    def is_subscribed_to(self, topic: str) -> bool:
        """OffsetDelete leaves topics alone that are in use: GROUP_SUBSCRIBED_TO_TOPIC."""

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        """From when on the retention of an offset committed then counts (KIP-211); None: not now."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """What makes the group itself disappear when it is written; its offsets are not part of it."""
