"""A consumer group (KIP-848): the broker assigns, and members move towards it one by one.

    group epoch    grows when subscriptions or topics change
    target epoch   the group epoch that the target assignment was computed for
    member epoch   the target epoch that a member has come to

Everything here is in the log and comes from it: ``apply`` is the only way to change a group, on the live path and on
the restart path. The exception is ``metadata_is_due``, which says that topics have to be looked at again: after a
restart they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headpond.coordination.groups.consumer import records
from headpond.coordination.groups.consumer.assignment import NO_TARGET, Target, partitions_of
from headpond.coordination.groups.consumer.checks import check_commit, check_fetch
from headpond.coordination.groups.consumer.member import Member
from headpond.coordination.groups.consumer.topics import TopicsView
from headpond.coordination.groups.group import CommittedPartition
from headpond.coordination.records import CoordinatorRecord
from headpond.model import BrokerError, ErrorCode, InvariantBroken, TopicId
from headpond.protocol.schema.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

FIRST_EPOCH = 1


class ResolvedRegex(NamedTuple):
    topics: frozenset[str]
    version: int
    """Of the metadata that it was resolved with."""
    timestamp_ms: int


class ConsumerGroup:
    kind = "consumer"
    protocol_type = "consumer"

    def __init__(self, group_id: str, topics: Callable[[], TopicsView]) -> None:
        self.group_id = group_id
        self._topics = topics
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}
        """Instance id -> member id."""
        self.targets: dict[str, Target] = {}
        self.owners: dict[tuple[TopicId, int], str] = {}
        """Who holds a partition, those that have to give it up included."""
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        """A record of Kafka 4.0 is still in the log."""
        self.is_deleted = False
        self.metadata_is_due = True
        self.name_counts: Counter[str] = Counter()
        self.regex_counts: Counter[str] = Counter()

    def copy(self) -> ConsumerGroup:
        """For a draft: what is applied to it does not reach this one."""
        copy = ConsumerGroup(self.group_id, self._topics)
        copy.__dict__.update(
            {
                name: value.copy() if isinstance(value, dict) else value  # members and the like are never changed
                for name, value in self.__dict__.items()
            }
        )
        return copy

    # --- what it is

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        return "Stable" if self.is_settled else "Reconciling"

    @property
    def is_settled(self) -> bool:
        """Everybody holds what the newest target gives."""
        return self.epoch <= self.target_epoch and all(
            member.is_reconciled_to(self.target_epoch) for member in self.members.values()
        )

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def classic_member_count(self) -> int:
        return sum(member.is_classic for member in self.members.values())

    def require(self, member_id: str) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    def subscription_of(self, member: Member) -> frozenset[str]:
        """The names of topics, existing or not; a regular expression that is not resolved yet matches none."""
        resolved = self.regexes.get(member.topic_regex)
        return member.topic_names | resolved.topics if resolved is not None else member.topic_names

    def topic_names(self) -> set[str]:
        """Everything that somebody is subscribed to."""
        names = set(self.name_counts)
        for regex in self.regex_counts:
            resolved = self.regexes.get(regex)
            if resolved is not None:
                names |= resolved.topics
        return names

    def waits_for_others(self, member: Member) -> bool:
        """Some of what it should get is still held by somebody else."""
        for topic_id, partitions in self.target_of(member.member_id).items():
            assigned = member.assigned.get(topic_id, ())
            if any(each not in assigned and (topic_id, each) in self.owners for each in partitions):
                return True
        return False

    def tombstones(self) -> list[CoordinatorRecord]:
        regexes = sorted(self.regexes.keys() | self.regex_counts.keys())
        return records.no_group(self.group_id, sorted(self.members.keys() | self.targets.keys()), regexes)

    # --- what others may do with it (``Group``)

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
        if generation_or_epoch < 0 and not self.members:
            return  # a consumer that assigns itself, or an operator
        if is_transactional and generation_or_epoch == -1 and not member_id and group_instance_id is None:
            return  # TxnOffsetCommit need not name a member
        member = self.require(member_id)
        if not is_transactional and not member.is_classic and request_version < 9:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the modern group protocol",
            )
        check_commit(member, generation_or_epoch, partitions, self._topics())

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            check_fetch(self.require(member_id or ""), member_epoch)

    def check_delete(self) -> None:
        if self.members:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        pass

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.name_counts or any(
            topic in resolved.topics for regex, resolved in self.regexes.items() if regex in self.regex_counts
        )

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        return committed_ms

    # --- the log

    def apply(self, record: CoordinatorRecord) -> None:
        key, value = record
        if isinstance(key, ConsumerGroupMemberMetadataKey):
            if value is None:
                self._drop_member(key.member_id)
            elif isinstance(value, ConsumerGroupMemberMetadataValue):
                self._put_member(self._member(key.member_id).with_metadata(value))
        elif isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
                self._put_member(self._member(key.member_id).with_assignment(value))
            elif key.member_id in self.members:
                self._put_member(self.members[key.member_id].without_assignment())
        elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
            if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
                self.targets[key.member_id] = {
                    TopicId(topic.topic_id): frozenset(topic.partitions) for topic in value.topic_partitions
                }
            else:
                self.targets.pop(key.member_id, None)
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
            found = value if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue) else None
            self.target_epoch = FIRST_EPOCH if found is None else found.assignment_epoch
            self.target_timestamp_ms = 0 if found is None else found.assignment_timestamp
        elif isinstance(key, ConsumerGroupMetadataKey):
            if isinstance(value, ConsumerGroupMetadataValue):
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
                self.metadata_is_due = False
            else:
                self.is_deleted = True
        elif isinstance(key, ConsumerGroupRegularExpressionKey):
            if isinstance(value, ConsumerGroupRegularExpressionValue):
                self.regexes[key.regular_expression] = ResolvedRegex(
                    frozenset(value.topics), value.version, value.timestamp
                )
            else:
                self.regexes.pop(key.regular_expression, None)
        elif isinstance(key, ConsumerGroupPartitionMetadataKey):
            self.has_partition_metadata = value is not None
        else:
            raise InvariantBroken(f"no record of a consumer group: {key!r}")

    def _member(self, member_id: str) -> Member:
        return self.members.get(member_id) or Member(member_id)

    def _put_member(self, member: Member) -> None:
        self._uncount(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self.name_counts.update(member.topic_names)
        if member.topic_regex:
            self.regex_counts[member.topic_regex] += 1
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        for held in (member.assigned, member.revoking):
            for partition in partitions_of(held):
                self.owners[partition] = member.member_id

    def _drop_member(self, member_id: str) -> None:
        self._uncount(self.members.pop(member_id, None))

    def _uncount(self, member: Member | None) -> None:
        if member is None:
            return
        instance_id = member.instance_id or ""
        if self.static_ids.get(instance_id) == member.member_id:  # nobody has taken its place
            del self.static_ids[instance_id]
        for name in member.topic_names:
            _decrease(self.name_counts, name)
        if member.topic_regex:
            _decrease(self.regex_counts, member.topic_regex)
        for held in (member.assigned, member.revoking):
            for partition in partitions_of(held):
                if self.owners.get(partition) == member.member_id:
                    del self.owners[partition]


def _decrease(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


class Draft:
    """A decision in the making: the records so far, and the group as it will be when they are replayed."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self.records: list[CoordinatorRecord] = []
        self.must_move_on = False
        """The next epoch is due, whatever else is decided."""
        self._is_copied = False

    def write(self, *written: CoordinatorRecord) -> None:
        if written and not self._is_copied:
            self.group = self.group.copy()
            self._is_copied = True
        for record in written:
            self.records.append(record)
            self.group.apply(record)
