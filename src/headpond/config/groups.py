"""What consumer groups and their offsets obey.

A group may have times of its own (``consumer.session.timeout.ms`` and the like, by AlterConfigs of a group): they are
held within what the broker allows when they are asked for, so that a narrower bound takes effect at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from headpond.config.definition import INT_MAX, trimmed, whole_number


class GroupTimes(msgspec.Struct, frozen=True):
    """What one group says for itself; None: nothing."""

    session_timeout_ms: int | None = None  # consumer.session.timeout.ms
    heartbeat_interval_ms: int | None = None  # consumer.heartbeat.interval.ms
    assignment_interval_ms: int | None = None  # consumer.assignment.interval.ms


_NOTHING_OF_ITS_OWN = GroupTimes()
_NO_GROUP: Mapping[str, GroupTimes] = MappingProxyType({})


class GroupSettings(msgspec.Struct, frozen=True):
    # classic groups
    session_timeout_ms_min: int = 6_000  # group.min.session.timeout.ms
    session_timeout_ms_max: int = 1_800_000  # group.max.session.timeout.ms
    members_max: int = INT_MAX  # group.max.size
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    # consumer groups (KIP-848): group.consumer.*
    has_consumer_groups: bool = True  # "consumer" is among group.coordinator.rebalance.protocols
    consumer_session_timeout_ms: int = 45_000
    consumer_session_timeout_ms_min: int = 45_000
    consumer_session_timeout_ms_max: int = 60_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_heartbeat_interval_ms_min: int = 5_000
    consumer_heartbeat_interval_ms_max: int = 15_000
    consumer_assignment_interval_ms: int = 1_000
    consumer_assignment_interval_ms_min: int = 0
    consumer_assignment_interval_ms_max: int = 15_000
    consumer_members_max: int = INT_MAX  # group.consumer.max.size
    consumer_assignors: tuple[str, ...] = ("uniform", "range")  # the first is the default
    consumer_migration_policy: str = "bidirectional"  # disabled, downgrade, upgrade or bidirectional
    consumer_regex_refresh_interval_ms: int = 600_000
    # offsets
    metadata_characters_max: int = 4_096  # offset.metadata.max.bytes: Kafka counts characters
    commit_timeout_ms: int = 5_000  # offsets.commit.timeout.ms: of everything that the coordinator writes
    retention_ms: int = 604_800_000  # offsets.retention.minutes
    retention_check_interval_ms: int = 600_000  # offsets.retention.check.interval.ms
    # the topic that they are kept in
    topic_partitions: int = 50  # offsets.topic.num.partitions
    topic_replication_factor: int = 3  # offsets.topic.replication.factor
    topic_segment_bytes: int = 104_857_600  # offsets.topic.segment.bytes
    times_of: Mapping[str, GroupTimes] = _NO_GROUP
    """By group id, of the groups that have settings of their own."""

    def session_timeout_ms(self, group_id: str) -> int:
        """Of a consumer group."""
        own = self.times_of.get(group_id, _NOTHING_OF_ITS_OWN).session_timeout_ms
        if own is None:
            return self.consumer_session_timeout_ms
        return min(max(own, self.consumer_session_timeout_ms_min), self.consumer_session_timeout_ms_max)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        own = self.times_of.get(group_id, _NOTHING_OF_ITS_OWN).heartbeat_interval_ms
        if own is None:
            return self.consumer_heartbeat_interval_ms
        return min(max(own, self.consumer_heartbeat_interval_ms_min), self.consumer_heartbeat_interval_ms_max)

    def assignment_interval_ms(self, group_id: str) -> int:
        own = self.times_of.get(group_id, _NOTHING_OF_ITS_OWN).assignment_interval_ms
        if own is None:
            return self.consumer_assignment_interval_ms
        return min(max(own, self.consumer_assignment_interval_ms_min), self.consumer_assignment_interval_ms_max)

    def with_times(self, overrides: Mapping[str, Mapping[str, str]]) -> GroupSettings:
        """The same with the groups' own settings, which were checked when they were stored."""
        if not overrides:
            return self
        times = {group_id: _times(texts) for group_id, texts in overrides.items()}
        return msgspec.structs.replace(self, times_of=MappingProxyType(times))


def _times(texts: Mapping[str, str]) -> GroupTimes:
    def number(name: str) -> int | None:
        return whole_number(trimmed(texts.get(name, "")), INT_MAX)

    return GroupTimes(
        session_timeout_ms=number("consumer.session.timeout.ms"),
        heartbeat_interval_ms=number("consumer.heartbeat.interval.ms"),
        assignment_interval_ms=number("consumer.assignment.interval.ms"),
    )
