"""One member of a consumer group, as the log tells it: who it is and what it wants (one record), what it holds and how
far it has come towards what it should hold (another). Never changed in place: a change is a new member."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headpond.coordination.groups.consumer.assignment import NOTHING_HELD, Held
from headpond.model import TopicId
from headpond.protocol.schema.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

JOINING_EPOCH = 0
LEFT_EPOCH = -1
LEFT_FOR_NOW_EPOCH = -2
"""A static member that said it will be back: its partitions wait for it until its session ends."""

ClassicMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
HeldTopic = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions


class MemberState(enum.IntEnum):
    """The numbers stand in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to give partitions up, and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 2
    """It has to get partitions that another member has not given up yet."""
    UNKNOWN = 127
    """A newer broker wrote it."""


class Member(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    """Set while it speaks the classic protocol."""
    epoch: int = JOINING_EPOCH
    previous_epoch: int = LEFT_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Held = NOTHING_HELD
    revoking: Held = NOTHING_HELD
    """What it has to give up: its own until it says that it has."""

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def changed(self, **changes: Any) -> Member:
        return msgspec.structs.replace(self, **changes)

    def at_epoch(self, epoch: int, **changes: Any) -> Member:
        return msgspec.structs.replace(self, epoch=epoch, previous_epoch=self.epoch, **changes)

    # --- to and from the log

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topic_names),
            subscribed_topic_regex=self.topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> Member:
        return self.changed(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def assignment_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_written(self.assigned),
            partitions_pending_revocation=_written(self.revoking),
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
        known = value.state in MemberState.__members__.values()
        return self.changed(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=_read(value.assigned_partitions, value.member_epoch),
            revoking=_read(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> Member:
        return self.changed(epoch=LEFT_EPOCH, previous_epoch=LEFT_EPOCH, assigned=NOTHING_HELD, revoking=NOTHING_HELD)


def with_epochs(held: Iterable[tuple[TopicId, Iterable[int]]], epoch: int) -> Held:
    return {topic_id: dict.fromkeys(sorted(partitions), epoch) for topic_id, partitions in held}


def _written(held: Held) -> list[HeldTopic]:
    return [_written_topic(topic_id, held[topic_id]) for topic_id in sorted(held)]


def _written_topic(topic_id: TopicId, partitions: Mapping[int, int]) -> HeldTopic:
    numbers = sorted(partitions)
    return HeldTopic(topic_id=topic_id, partitions=numbers, assignment_epochs=[partitions[each] for each in numbers])


def _read(topics: Sequence[HeldTopic], member_epoch: int) -> Held:
    """Before Kafka 4.3 epochs were not written: as if the member had got everything in its present one."""
    held: dict[TopicId, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        held[TopicId(topic.topic_id)] = dict(zip(topic.partitions, epochs, strict=True))
    return held
