"""What an assignor is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headpond.coordination.groups.consumer.assignment import NO_TARGET, Target
from headpond.model import TopicId


class MemberSpec(NamedTuple):
    topics: frozenset[TopicId]
    """Those that it is subscribed to, and that exist."""
    instance_id: str | None = None
    target: Target = NO_TARGET
    """What it should have held so far."""


class GroupSpec(NamedTuple):
    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[TopicId, int]
    """Of every topic that a member is subscribed to."""

    @property
    def is_homogeneous(self) -> bool:
        """Everybody is subscribed to the same topics."""
        return len({member.topics for member in self.members.values()}) <= 1
