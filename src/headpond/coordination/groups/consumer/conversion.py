"""Classic groups become consumer groups and back, while they are in use (KIP-848, ``group.consumer.migration.policy``).

Up      the first member that speaks the new protocol joins: everybody else stays in, as a classic member of a consumer
        group, holding what it held: what it was given last, and what it said it owns when it joined last. (Kafka
        leaves the second out. In the middle of a rebalance a cooperative member still has it, and could commit for it
        while another has got it.) Its generation is its epoch. The group moves on to its next epoch at once if a
        rebalance was under way, or if what is held is not what there is: a topic has grown since, and the classic
        leader had not seen it. (Kafka 4.3.1 does not where who joins changes no subscription, a static member that
        only changes its protocol: it takes the new partitions for known, and nobody reads them.)
Down    the last member that speaks the new protocol leaves, or a static one comes back as a classic member: the rest
        is a classic group again, in the generation of the group's epoch, and rebalances. (Kafka does not where the
        static one has the subscription that it had, nor when it crashes before: then what a member had not got yet,
        or had given up, would have no reader.) Written down is what its members were to hold, as in Kafka. If it goes
        up again before they join, that is all that is known of them: who owns more is put out (``classic_door.py``).

Both are one batch of records: the tombstones of the one and the whole of the other. A crash finds either.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.classic.member import Member as ClassicMember
from headpond.coordination.groups.classic.protocols import CONSUMER, Support, elected
from headpond.coordination.groups.consumer import embedded, records
from headpond.coordination.groups.consumer.group import ConsumerGroup, Draft
from headpond.coordination.groups.consumer.member import ClassicMetadata, Member, with_epochs
from headpond.coordination.groups.consumer.topics import TopicsView, metadata_hash
from headpond.coordination.records import CoordinatorRecord
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.classic_group_records import GroupMetadataKey, GroupMetadataValue
from headpond.protocol.schema.consumer_group_records import ConsumerGroupMemberMetadataValue
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolSubscription

_UP = ("bidirectional", "upgrade")
_DOWN = ("bidirectional", "downgrade")

ClassicProtocol = ConsumerGroupMemberMetadataValue.ClassicProtocol


def check_classic_member_may_join(group: ConsumerGroup, settings: GroupSettings) -> None:
    """A group of both kinds would be one on its way up or down."""
    if not classic_members_may_join(settings):
        raise BrokerError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration is "
            "disabled.",
        )


def classic_members_may_join(settings: GroupSettings) -> bool:
    return settings.consumer_migration_policy.lower() != "disabled"


# --- up


def check_upgrade(classic: ClassicGroup, settings: GroupSettings) -> None:
    if settings.consumer_migration_policy.lower() not in _UP:
        raise _no_upgrade(classic, "online upgrade is disabled")
    if not classic.is_of_consumers:
        raise _no_upgrade(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.consumer_members_max:
        raise _no_upgrade(classic, "the group size exceeds the consumer group maximum size")


def upgrade(draft: Draft, classic: ClassicGroup, topics: TopicsView) -> None:
    """Into the draft of an empty group. A rebalance that was under way, or was due, has to be done here, also if who
    joins changes nothing: an instance that takes its own place over."""
    draft.records.extend(classic.tombstones())
    group_id, epoch = classic.group_id, classic.generation
    members = _upgraded_members(classic, topics)
    draft.write(*(records.member_metadata(group_id, member) for member in members))
    draft.write(records.group_epoch(group_id, epoch, metadata_hash(draft.group.topic_names(), topics)))
    for member in members:
        target = {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}
        draft.write(records.target_assignment(group_id, member.member_id, target))
    draft.write(records.target_epoch(group_id, epoch, timestamp_ms=0))
    draft.write(*(records.current_assignment(group_id, member) for member in members))
    # The hash above is of the topics of now: no later look would find what they have changed by.
    draft.must_move_on = classic.phase is not Phase.STABLE or not _holds_what_exists(draft.group, topics)


def _holds_what_exists(group: ConsumerGroup, topics: TopicsView) -> bool:
    """Each partition of what is subscribed to, and no other."""
    found = (topics.facts(name) for name in group.topic_names())
    return group.owners.keys() == {
        (facts.topic_id, each) for facts in found if facts is not None for each in range(facts.partition_count)
    }


def _upgraded_members(classic: ClassicGroup, topics: TopicsView) -> list[Member]:
    if not classic.members:  # the first ones left before their first generation
        return []
    protocol_name = classic.protocol_name
    if protocol_name is None or protocol_name not in classic.elected_from():  # somebody has joined who lacks the last
        protocol_name = classic.elected_protocol()
    try:
        read = [_read(member, protocol_name, classic, topics) for member in classic.members.values()]
    except MalformedMessage:
        raise _no_upgrade(classic, "the embedded consumer protocol is malformed") from None
    held = _held(read)
    return [_upgraded(each, held[each.member.member_id], classic.generation) for each in read]


class _Read(NamedTuple):
    member: ClassicMember
    subscription: ConsumerProtocolSubscription
    given: set[tuple[TopicId, int]]
    owned: set[tuple[TopicId, int]]
    """As it said when it joined."""


def _read(member: ClassicMember, protocol_name: str, classic: ClassicGroup, topics: TopicsView) -> _Read:
    subscription = embedded.read_subscription(member.metadata(protocol_name))
    given, user_data = embedded.read_assignment(member.assignment, topics)
    if user_data:
        raise BrokerError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {classic.group_id} to consumer group because an unsupported custom "
            "assignor is in use. Please refer to the documentation or switch to a default assignor before "
            "re-attempting the upgrade.",
        )
    partitions = {(topic_id, each) for topic_id in given for each in given[topic_id]}
    return _Read(member, subscription, partitions, embedded.owned_partitions(subscription, topics))


def _held(members: Sequence[_Read]) -> dict[str, dict[TopicId, set[int]]]:
    """By member id. A client's assignor may have given a partition to two; here it has one holder. What somebody was
    given comes first: who owned it before has given it up."""
    holders: dict[tuple[TopicId, int], str] = {}
    for each in members:
        holders.update(dict.fromkeys(each.given - holders.keys(), each.member.member_id))
    for each in members:
        holders.update(dict.fromkeys(each.owned - holders.keys(), each.member.member_id))
    held: dict[str, dict[TopicId, set[int]]] = {each.member.member_id: {} for each in members}
    for (topic_id, partition), member_id in holders.items():
        held[member_id].setdefault(topic_id, set()).add(partition)
    return held


def _upgraded(read: _Read, held: dict[TopicId, set[int]], generation: int) -> Member:
    member, subscription = read.member, read.subscription
    return Member(
        member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols],
        ),
        epoch=generation,
        previous_epoch=generation,
        assigned=with_epochs(held.items(), generation),
    )


def _no_upgrade(classic: ClassicGroup, why: str) -> BrokerError:
    return BrokerError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}.",
    )


# --- down


def can_downgrade(group: ConsumerGroup, leaving: Collection[str], settings: GroupSettings, *, joining: int = 0) -> bool:
    """Whether everybody but those who leave speaks the classic protocol. ``joining``: how many take their place."""
    staying = [member for member_id, member in group.members.items() if member_id not in leaving]
    size = len(staying) + joining
    return (
        size > 0
        and all(member.is_classic for member in staying)
        and settings.consumer_migration_policy.lower() in _DOWN
        and size <= settings.members_max
    )


def downgrade(
    group: ConsumerGroup, leaving: Collection[str], topics: TopicsView, now_ms: int
) -> list[CoordinatorRecord]:
    """Everybody who stays speaks the classic protocol."""
    members = [_downgraded(group, member, topics) for each, member in group.members.items() if each not in leaving]
    support = Support()
    for member in members:
        support.add(member)
    protocol_name = elected(members, support.by_all(len(members)))
    value = GroupMetadataValue(
        protocol_type=CONSUMER,
        generation=group.epoch,
        protocol=protocol_name,
        leader=None,  # also after a crash everybody joins again: what those who left held has to be given to somebody
        current_state_timestamp=now_ms,
        members=[_stored(member, protocol_name, group, topics) for member in members],
    )
    return [*group.tombstones(), CoordinatorRecord(GroupMetadataKey(group=group.group_id), value)]


def _downgraded(group: ConsumerGroup, member: Member, topics: TopicsView) -> ClassicMember:
    classic = member.classic or ClassicMetadata()
    return ClassicMember(
        member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols),
    )


def _stored(
    member: ClassicMember, protocol_name: str, group: ConsumerGroup, topics: TopicsView
) -> GroupMetadataValue.MemberMetadata:
    metadata = member.metadata(protocol_name)
    return GroupMetadataValue.MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=metadata,
        assignment=embedded.written_assignment(group.target_of(member.member_id), topics, like=metadata),
    )
