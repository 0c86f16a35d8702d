"""ConsumerGroupDescribe, and what the rest of the coordinator asks of a consumer group."""

from __future__ import annotations

import pytest

from headpond.coordination.groups.group import CommittedPartition, Group
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.codec import encoder
from headpond.protocol.schema.consumer_group_describe import ConsumerGroupDescribeResponse
from unit.coordination.consumer_world import GROUP, World, no_wait

Described = ConsumerGroupDescribeResponse.DescribedGroup


def describe(world: World, group_id: str = GROUP) -> Described:
    found = world.consumer.describe(group_id)
    for version in ConsumerGroupDescribeResponse.VERSIONS:
        encoder(ConsumerGroupDescribeResponse, version)(ConsumerGroupDescribeResponse(groups=[found]))
    return found


def held(assignment: ConsumerGroupDescribeResponse.Assignment) -> dict[str, list[int]]:
    return {topic.topic_name: topic.partitions for topic in assignment.topic_partitions}


def test_a_group_is_described_with_epochs_members_and_what_they_hold_and_should_hold() -> None:
    world = World(orders=2)
    world.join("one", "orders", instance_id="pod-0", rack_id="r1")
    found = describe(world)
    assert (found.error_code, found.group_state, found.group_epoch, found.assignment_epoch) == (0, "Stable", 2, 2)
    assert found.assignor_name == "uniform"
    (member,) = found.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("one", "pod-0", "r1")
    assert (member.member_epoch, member.client_id, member.client_host) == (2, "client", "/192.0.2.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["orders"], "")
    assert held(member.assignment) == held(member.target_assignment) == {"orders": [0, 1]}
    assert member.member_type == 1


def test_what_is_still_to_be_given_up_is_shown_as_held() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.join("two", "orders")
    world.beat("one", 2)
    found = describe(world)
    assert found.group_state == "Reconciling"
    assert [(held(each.assignment), held(each.target_assignment)) for each in found.members] == [
        ({"orders": [0, 1]}, {"orders": [0]}),
        ({}, {"orders": [1]}),
    ]


def test_topics_that_are_gone_are_left_out() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.drop_topic("orders")
    assert held(describe(world).members[0].assignment) == {}


def test_an_unknown_group_and_a_classic_one_are_not_found() -> None:
    world = World(orders=2)
    assert (describe(world).error_code, describe(world).error_message) == (69, f"Group {GROUP} not found.")
    world.classic_join("", "orders")
    assert describe(world).error_message == f"Group {GROUP} is not a consumer group."


def test_the_assignor_that_most_ask_for_is_used() -> None:
    world = World(orders=2)
    world.join("one", "orders", server_assignor="range")
    world.join("two", "orders")
    assert describe(world).assignor_name == "range"
    world.join("three", "orders", server_assignor="uniform")
    assert describe(world).assignor_name == "uniform"  # as many for each: the one that is configured first
    world.settings = no_wait(consumer_assignors=("range",))
    assert describe(world).assignor_name == "range"


# --- committing


def commit(
    world: World,
    member_id: str,
    epoch: int,
    *,
    version: int = 9,
    is_transactional: bool = False,
    partitions: list[int] | None = None,
) -> ErrorCode | None:
    group: Group = world.group()
    try:
        group.check_commit(
            member_id=member_id,
            group_instance_id=None,
            generation_or_epoch=epoch,
            is_transactional=is_transactional,
            request_version=version,
            partitions=[CommittedPartition("orders", each) for each in partitions or ()],
        )
    except BrokerError as refused:
        return refused.code
    return None


def test_members_commit_in_their_epoch() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    assert commit(world, "one", 2) is None
    assert commit(world, "one", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "one", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "two", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world, "one", 2, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_an_older_epoch_will_do_for_what_the_member_has_held_since_then() -> None:
    world = World(orders=4)
    world.join("one", "orders")
    world.join("two", "orders")
    world.beat("one", 2)
    assert commit(world, "one", 2, partitions=[0, 1, 2, 3]) is None  # not given up yet
    world.beat("one", 2, owned={"orders": [0, 1]})
    assert commit(world, "one", 2, partitions=[0, 1]) is None
    assert commit(world, "one", 1, partitions=[0, 1]) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "one", 2, partitions=[0, 2]) is ErrorCode.STALE_MEMBER_EPOCH  # all or nothing
    assert commit(world, "one", 4, partitions=[0]) is ErrorCode.STALE_MEMBER_EPOCH
    world.beat("two", 3)
    assert commit(world, "two", 2, partitions=[2]) is ErrorCode.STALE_MEMBER_EPOCH


def test_an_older_epoch_will_do_for_a_classic_member_too() -> None:
    world = World(orders=4)
    world.join("one", "orders")
    world.classic_join("one", "orders", owned={"orders": [0, 1, 2, 3]})
    world.join("two", "orders")
    world.classic_join("one", "orders", owned={"orders": [0, 1]})
    assert world.group().members["one"].epoch == 3
    assert commit(world, "one", 2, partitions=[0, 1], version=8) is None
    assert commit(world, "one", 1, partitions=[0], version=8) is ErrorCode.ILLEGAL_GENERATION
    assert commit(world, "one", 2, partitions=[0, 2], version=8) is ErrorCode.ILLEGAL_GENERATION
    assert commit(world, "one", 4, partitions=[0], version=8) is ErrorCode.ILLEGAL_GENERATION


def test_the_topic_may_be_named_by_its_id() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.put_topic("orders", 3)
    world.beat("one", 2)
    for partition, outcome in ((0, None), (2, ErrorCode.STALE_MEMBER_EPOCH)):
        by_id = [CommittedPartition("", partition, world.id_of("orders"))]
        try:
            world.group().check_commit(
                member_id="one",
                group_instance_id=None,
                generation_or_epoch=2,
                is_transactional=False,
                request_version=10,
                partitions=by_id,
            )
        except BrokerError as refused:
            assert refused.code is outcome
        else:
            assert outcome is None


def test_operators_commit_while_the_group_is_empty() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    assert commit(world, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    world.leave("one")
    assert commit(world, "", -1) is None


def test_transactions_need_not_name_a_member() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    assert commit(world, "", -1, is_transactional=True) is None
    assert commit(world, "one", 5, is_transactional=True) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "one", 2, is_transactional=True, version=4) is None


def test_readers_of_offsets_are_fenced_when_they_name_themselves() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    group: Group = world.group()
    group.check_fetch(member_id=None, member_epoch=-1)
    group.check_fetch(member_id="one", member_epoch=2)
    for member_id, epoch, code in (
        ("one", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("two", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 2, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(BrokerError) as refused:
            group.check_fetch(member_id=member_id, member_epoch=epoch)
        assert refused.value.code is code


def test_only_an_empty_group_is_deleted() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    with pytest.raises(BrokerError) as refused:
        world.group().check_delete()
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    world.group().check_delete_offsets()
    world.leave("one")
    world.group().check_delete()
    assert world.group().offsets_expire_since_ms(17) == 17
