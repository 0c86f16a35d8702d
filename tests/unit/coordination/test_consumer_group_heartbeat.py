"""ConsumerGroupHeartbeat: joining, staying, leaving, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.stored_types import GROUP_CODEC
from headpond.coordination.records import CoordinatorRecord
from headpond.model import ErrorCode
from headpond.protocol.schema.consumer_group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from unit.coordination.consumer_world import GROUP, World, no_wait


def kinds(batch: list[tuple[Any, Any]]) -> list[str]:
    """What a batch is made of; tombstones with a minus."""
    short = [type(key).__name__.removeprefix("ConsumerGroup").removesuffix("Key") for key, _ in batch]
    return [name if value is not None else f"-{name}" for name, (_, value) in zip(short, batch, strict=True)]


JOINED = ["MemberMetadata", "Metadata", "TargetAssignmentMember", "TargetAssignmentMetadata", "CurrentMemberAssignment"]


def test_the_first_member_gets_everything_in_the_second_epoch() -> None:
    world = World(orders=3)
    response = world.join("one", "orders")
    assert (response.member_id, response.member_epoch) == ("one", 2)
    assert response.heartbeat_interval_ms == 5_000
    assert world.held(response) == {"orders": [0, 1, 2]}
    assert world.group().state == "Stable"
    assert kinds(world.batches[0]) == JOINED


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_says_nothing_new() -> None:
    world = World(orders=3)
    world.join("one", "orders")
    response = world.beat("one", 2)
    assert (response.member_epoch, world.held(response)) == (2, None)
    assert len(world.batches) == 1


def test_a_member_that_sends_everything_is_told_its_assignment_again() -> None:
    world = World(orders=3)
    world.join("one", "orders")
    full = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": ["orders"], "owned": {"orders": [0]}}
    assert world.held(world.beat("one", 2, **full)) == {"orders": [0, 1, 2]}


def test_an_id_is_made_for_members_of_version_0_that_bring_none() -> None:
    world = World(orders=1)
    response = world.join("", "orders", version=0)
    assert len(response.member_id or "") == 22
    assert world.beat(response.member_id or "", 2, version=0).member_epoch == 2


def test_nobody_is_subscribed_and_the_group_stays_in_its_first_epoch() -> None:
    world = World(orders=1)
    assert world.join("one").member_epoch == 1
    assert world.group().state == "Stable"


def test_a_topic_that_does_not_exist_yet_is_assigned_when_it_does() -> None:
    world = World()
    assert world.held(world.join("one", "orders")) == {}
    world.put_topic("orders", 2)
    response = world.beat("one", 2)
    assert (response.member_epoch, world.held(response)) == (3, {"orders": [0, 1]})


def test_a_topic_that_grows_moves_the_group_to_its_next_epoch_once() -> None:
    world = World(orders=1, other=1)
    world.join("one", "orders")
    world.put_topic("other", 5)
    assert world.beat("one", 2).member_epoch == 2
    world.put_topic("orders", 3)
    response = world.beat("one", 2)
    assert (response.member_epoch, world.held(response)) == (3, {"orders": [0, 1, 2]})
    assert world.beat("one", 3).member_epoch == 3


def test_a_deleted_topic_is_given_up() -> None:
    world = World(orders=1, other=1)
    world.join("one", "orders", "other")
    gone = world.id_of("other")
    world.drop_topic("other")
    assert world.held(world.beat("one", 2)) == {"orders": [0]}
    assert list(world.group().members["one"].revoking) == [gone]
    assert world.beat("one", 2, owned={"orders": [0]}).member_epoch == 3


def test_topics_are_looked_at_again_after_a_restart() -> None:
    world = World(orders=1)
    world.join("one", "orders")
    world._put_topic("orders", 2)  # while nobody coordinated the group
    world.restart()
    assert world.beat("one", 2).member_epoch == 3


def test_a_changed_subscription_takes_away_at_once_what_is_no_longer_wanted() -> None:
    world = World(GroupSettings(), orders=1, other=1)
    world.join("one", "orders", "other")
    response = world.beat("one", 2, subscribed_topic_names=["orders"])
    assert (response.member_epoch, world.held(response)) == (2, {"orders": [0]})  # no new target yet
    assert world.group().state == "Assigning"
    world.advance(1)
    response = world.beat("one", 2, owned={"orders": [0]})
    assert (response.member_epoch, world.group().state) == (3, "Stable")


# --- the assignment interval


def test_within_the_assignment_interval_newcomers_wait_in_the_epoch_of_the_last_target() -> None:
    world = World(GroupSettings(), orders=4)
    world.join("one", "orders")
    response = world.join("two", "orders")
    assert (response.member_epoch, world.held(response)) == (2, {})
    assert (world.group().epoch, world.group().target_epoch, world.group().state) == (3, 2, "Assigning")
    assert kinds(world.batches[-1]) == ["MemberMetadata", "Metadata", "CurrentMemberAssignment"]
    world.advance(0.999)
    assert world.beat("two", 2).member_epoch == 2
    world.advance(0.001)
    assert world.beat("two", 2).member_epoch == 3
    written = [value for _, value in world.batches[-1] if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)]
    assert [value.assignment_timestamp for value in written] == [world.clock.now_ms()]


def test_the_interval_goes_on_after_a_restart_and_a_clock_that_is_set_back_does_not_prolong_it() -> None:
    world = World(GroupSettings(), orders=4)
    world.join("one", "orders")
    world.restart()
    assert world.join("two", "orders").member_epoch == 2
    world.clock.wall_offset_ms -= 3_600_000
    assert world.beat("two", 2).member_epoch == 3


# --- epochs


def test_a_member_that_lost_an_answer_is_heard_with_its_last_epoch() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.put_topic("orders", 3)
    assert world.beat("one", 2).member_epoch == 3
    assert world.beat("one", 2, owned={"orders": [0, 1]}).member_epoch == 3


@pytest.mark.parametrize("owned", [None, {"orders": [7]}])
def test_but_not_if_it_claims_what_it_does_not_hold_or_does_not_say(owned: Any) -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.put_topic("orders", 3)
    world.beat("one", 2)
    assert world.error(lambda: world.beat("one", 2, owned=owned)) == (
        ErrorCode.FENCED_MEMBER_EPOCH,
        "The consumer group member has a smaller member epoch (2) than the one known by the group coordinator (3). "
        "The member must abandon all its partitions and rejoin.",
    )


def test_an_epoch_from_the_future_is_fenced() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    assert world.error(lambda: world.beat("one", 9, owned={})) == (
        ErrorCode.FENCED_MEMBER_EPOCH,
        "The consumer group member has a greater member epoch (9) than the one known by the group coordinator (2). "
        "The member must abandon all its partitions and rejoin.",
    )


def test_a_join_whose_answer_was_lost_may_be_repeated() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    response = world.join("one", "orders")
    assert (response.member_epoch, world.held(response)) == (2, {"orders": [0, 1]})
    assert len(world.batches) == 1


def test_a_member_that_joins_anew_holds_nothing_any_more_and_goes_on_from_where_it_was() -> None:
    world = World(orders=4)
    world.join("one", "orders")
    world.join("two", "orders")
    world.beat("one", 2)
    response = world.join("one", "orders")
    assert (response.member_epoch, world.held(response)) == (3, {"orders": [0, 1]})
    assert world.held(world.beat("two", 3)) == {"orders": [2, 3]}


# --- refusals that do not depend on the group


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": " \t"}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"group_id": "  "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": {"orders": [0]}}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"epoch": -2}, "InstanceId can't be null."),
        ({"epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_in_kafkas_words(fields: dict[str, Any], why: str) -> None:
    world = World(orders=1)
    request: dict[str, Any] = {
        "member_id": "one",
        "epoch": 0,
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": ["orders"],
        "owned": {},
    }
    request |= fields
    assert world.error(lambda: world.beat(**request)) == (ErrorCode.INVALID_REQUEST, why)


@pytest.mark.parametrize("epoch", [1, -1])
def test_only_a_joining_member_of_version_0_may_come_without_an_id(epoch: int) -> None:
    world = World(orders=1)
    refusal = world.error(lambda: world.beat("", epoch, version=0))
    assert refusal == (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")


def test_an_assignor_that_is_not_offered_is_refused() -> None:
    world = World(orders=1)
    assert world.error(lambda: world.join("one", "orders", server_assignor="best")) == (
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor best is not supported. Supported assignors: uniform, range.",
    )


# --- refusals that do


def test_only_joining_makes_a_group() -> None:
    world = World(orders=1)
    unknown = ErrorCode.GROUP_ID_NOT_FOUND
    assert world.error(lambda: world.beat("one", 3)) == (unknown, f"Consumer group {GROUP} not found.")
    assert world.error(lambda: world.leave("one")) == (unknown, f"Group {GROUP} not found.")


def test_an_unknown_member_is_told_so() -> None:
    world = World(orders=1)
    world.join("one", "orders")
    refusal = (ErrorCode.UNKNOWN_MEMBER_ID, f"Member two is not a member of group {GROUP}.")
    assert world.error(lambda: world.beat("two", 2)) == refusal
    assert world.error(lambda: world.leave("two")) == refusal


def test_a_full_group_takes_nobody_else() -> None:
    world = World(no_wait(consumer_members_max=1), orders=2)
    world.join("one", "orders")
    assert world.error(lambda: world.join("two", "orders")) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 1 members.",
    )
    assert world.beat("one", 2).member_epoch == 2


# --- leaving


def test_leaving_frees_the_partitions_and_moves_the_group_on() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.join("two", "orders")
    response = world.leave("one")
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("one", -1, 0)
    assert kinds(world.batches[-1]) == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "Metadata",
    ]
    assert world.group().state == "Assigning"
    assert world.held(world.beat("two", 3)) == {"orders": [0, 1]}


def test_the_last_one_to_leave_leaves_an_empty_group_whose_epoch_goes_on() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.leave("one")
    assert (world.group().state, world.group().is_empty) == ("Empty", True)
    value = world.batches[-1][-1][1]
    assert isinstance(value, ConsumerGroupMetadataValue)
    assert (value.epoch, value.metadata_hash) == (3, 0)
    assert world.join("two", "orders").member_epoch == 4


def test_tombstones_delete_a_group() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.leave("one")
    for record in world.group().tombstones():
        key, value = GROUP_CODEC.encode(record)
        world.log.append((key, value))
        world._replay(key, value)
    assert world.groups == {}
    world.restart()
    assert world.groups == {}


def test_what_kafka_4_0_kept_of_topics_is_removed_when_the_epoch_moves() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    legacy = CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=GROUP), ConsumerGroupPartitionMetadataValue())
    world._replay(*GROUP_CODEC.encode(legacy))
    world.join("two", "orders")
    assert "-PartitionMetadata" in kinds(world.batches[-1])
    assert not world.group().has_partition_metadata


def test_a_decision_that_can_not_be_written_has_changed_nothing() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.append_error = ErrorCode.NOT_COORDINATOR
    assert world.error(lambda: world.join("two", "orders"))[0] is ErrorCode.NOT_COORDINATOR
    assert list(world.group().members) == ["one"]
    world.append_error = None
    world.advance(46)  # its session would have ended: there is nobody to fence
    world.restart()
    assert "two" not in world.group().members


def test_a_changed_address_is_written_down_without_a_rebalance() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    assert world.beat("one", 2, host="/192.0.2.77").member_epoch == 2
    ((key, value),) = world.batches[-1]
    assert isinstance(key, ConsumerGroupMemberMetadataKey) and value.client_host == "/192.0.2.77"
    assert not any(isinstance(key, ConsumerGroupMetadataKey) for key, _ in world.batches[-1])
