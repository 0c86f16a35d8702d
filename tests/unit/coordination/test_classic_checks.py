"""What the offsets of a classic group may be used for in each of its states, and how its assignor is elected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headpond.coordination.groups.classic import ClassicGroup
from headpond.coordination.groups.group import Group
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.codec import encoder
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolSubscription
from unit.coordination.classic_world import DELAY_MS, World

NONE = ErrorCode.NONE


def error_of(check: Callable[[], None]) -> ErrorCode:
    try:
        check()
    except BrokerError as refused:
        return ErrorCode(refused.code)
    return NONE


def commit_error(
    group: Group, member_id: str = "", generation: int = -1, instance_id: str | None = None, *, in_txn: bool = False
) -> ErrorCode:
    return error_of(
        lambda: group.check_commit(
            member_id=member_id,
            group_instance_id=instance_id,
            generation_or_epoch=generation,
            is_transactional=in_txn,
            request_version=9,
        )
    )


def in_state(state: str, **how: Any) -> tuple[ClassicGroup, str]:
    """A group in that state, and one of its members (or one that was)."""
    world = World()
    if state == "CompletingRebalance":
        member_id, _ = world.enter(**how)
        world.advance_ms(DELAY_MS)
    else:
        (member_id,) = world.stable(1, **how)
    group = world.group()
    if state == "PreparingRebalance":
        world.enter(**how)
    elif state == "Empty":
        world.leave(member_id)
    elif state == "Dead":
        world.classic.close()
    assert group.state == state
    return group, member_id


STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")


@pytest.mark.parametrize(
    ("state", "of_member", "of_nobody", "of_nobody_in_txn"),
    [
        ("Empty", ErrorCode.UNKNOWN_MEMBER_ID, NONE, NONE),
        ("PreparingRebalance", NONE, ErrorCode.UNKNOWN_MEMBER_ID, NONE),
        ("CompletingRebalance", ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID, NONE),
        ("Stable", NONE, ErrorCode.UNKNOWN_MEMBER_ID, NONE),
        ("Dead", *[ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3),
    ],
)
def test_who_may_commit(state: str, of_member: ErrorCode, of_nobody: ErrorCode, of_nobody_in_txn: ErrorCode) -> None:
    group, member_id = in_state(state)
    assert commit_error(group, member_id, group.generation) == of_member
    assert commit_error(group) == of_nobody
    assert commit_error(group, in_txn=True) == of_nobody_in_txn


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Stable"])
@pytest.mark.parametrize("in_txn", [False, True])
def test_commits_are_fenced_by_member_generation_and_instance(state: str, in_txn: bool) -> None:
    group, member_id = in_state(state)
    now = group.generation
    assert commit_error(group, member_id, now - 1, in_txn=in_txn) == ErrorCode.ILLEGAL_GENERATION
    assert commit_error(group, member_id, -1, in_txn=in_txn) == ErrorCode.ILLEGAL_GENERATION
    assert commit_error(group, "somebody", now, in_txn=in_txn) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(group, "", now, in_txn=in_txn) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(group, member_id, now, "one", in_txn=in_txn) == ErrorCode.UNKNOWN_MEMBER_ID


def test_transactions_may_commit_in_the_sync_phase() -> None:
    group, member_id = in_state("CompletingRebalance")
    assert commit_error(group, member_id, group.generation, in_txn=True) == NONE


def test_commits_of_an_old_static_member_are_fenced() -> None:
    world = World()
    _, old_id = world.stable(1, instances=("one",))
    new_id = world.join(instance_id="one").answer.member_id
    assert commit_error(world.group(), old_id, 1, "one") == ErrorCode.FENCED_INSTANCE_ID
    assert commit_error(world.group(), new_id, 1, "one") == NONE


@pytest.mark.parametrize(
    ("state", "delete", "delete_offsets", "fetch"),
    [
        ("Empty", NONE, NONE, NONE),
        ("PreparingRebalance", ErrorCode.NON_EMPTY_GROUP, ErrorCode.NON_EMPTY_GROUP, NONE),
        ("CompletingRebalance", ErrorCode.NON_EMPTY_GROUP, ErrorCode.NON_EMPTY_GROUP, NONE),
        ("Stable", ErrorCode.NON_EMPTY_GROUP, ErrorCode.NON_EMPTY_GROUP, NONE),
        ("Dead", *[ErrorCode.GROUP_ID_NOT_FOUND] * 3),
    ],
)
def test_what_may_be_deleted_and_read(
    state: str, delete: ErrorCode, delete_offsets: ErrorCode, fetch: ErrorCode
) -> None:
    group, _ = in_state(state, protocol_type="connect")
    assert error_of(group.check_delete) == delete
    assert error_of(group.check_delete_offsets) == delete_offsets
    assert error_of(lambda: group.check_fetch(member_id="whoever", member_epoch=99)) == fetch


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Stable"])
def test_offsets_of_consumers_may_be_deleted_topic_by_topic(state: str) -> None:
    group, _ = in_state(state)
    assert error_of(group.check_delete_offsets) == NONE


# --- subscriptions and expiry


def subscription(*topics: str, version: int = 3) -> bytes:
    value = ConsumerProtocolSubscription(topics=list(topics))
    return version.to_bytes(2, "big") + encoder(ConsumerProtocolSubscription, version)(value)


@pytest.mark.parametrize("version", range(4))
def test_the_topics_of_consumers_are_known(version: int) -> None:
    group, _ = in_state("Stable", protocols=(("range", subscription("a", "b", version=version)),))
    assert [group.is_subscribed_to(topic) for topic in "abc"] == [True, True, False]


def test_the_topics_of_all_members_count() -> None:
    world = World()
    world.enter(protocols=(("range", subscription("a")),))
    world.enter(protocols=(("range", subscription("b")),))
    world.advance_ms(2 * DELAY_MS)
    assert world.group().topics == frozenset({"a", "b"})


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0\0\0\0\1", b"\0\0\xff\xff\xff\xff"])
def test_consumers_whose_metadata_cannot_be_read_may_be_subscribed_to_anything(metadata: bytes) -> None:
    group, _ = in_state("Stable", protocols=(("range", metadata),))
    assert group.topics is None and group.is_subscribed_to("a")
    assert group.offsets_expire_since_ms(5) is None


def test_others_are_subscribed_to_nothing() -> None:
    group, _ = in_state("Stable", protocol_type="connect")
    assert not group.is_subscribed_to("a")


def test_after_a_restart_the_topics_are_known_again() -> None:
    world = World()
    world.stable(1, protocols=(("range", subscription("a")),))
    world.restart()
    assert world.group().topics == frozenset({"a"})


def test_offsets_expire_from_when_the_group_became_empty() -> None:
    group, _ = in_state("Empty")
    assert group.since_ms is not None
    assert group.offsets_expire_since_ms(5) == group.since_ms
    group.since_ms = None  # stored by an old Kafka
    assert group.offsets_expire_since_ms(5) == 5
    assert not group.is_subscribed_to("a")


@pytest.mark.parametrize(
    ("state", "since"), [("Stable", 5), ("PreparingRebalance", None), ("CompletingRebalance", None)]
)
def test_offsets_of_a_living_group_expire_only_while_it_is_stable(state: str, since: int | None) -> None:
    group, _ = in_state(state, protocols=(("range", subscription("a")),))
    assert group.offsets_expire_since_ms(5) == since


def test_offsets_of_others_than_consumers_stay_while_somebody_is_there() -> None:
    group, _ = in_state("Stable", protocol_type="connect")
    assert group.offsets_expire_since_ms(5) is None


def test_offsets_of_a_simple_group_expire_from_their_commit() -> None:
    assert World().classic.simple("loner").offsets_expire_since_ms(5) == 5


# --- the election of an assignor


def elected(*members: tuple[str, ...]) -> str:
    world = World()
    replies = [world.enter(protocols=protocols)[1] for protocols in members]
    world.advance_ms(2 * DELAY_MS)
    assert len({reply.answer.protocol_name for reply in replies}) == 1
    return str(replies[0].answer.protocol_name)


def test_only_a_protocol_that_all_support_is_elected() -> None:
    assert elected(("sticky", "range"), ("roundrobin", "range")) == "range"


def test_the_first_choices_of_the_members_are_counted() -> None:
    assert elected(("range", "sticky"), ("sticky", "range"), ("sticky", "range")) == "sticky"
    assert elected(("range", "sticky"), ("range", "sticky"), ("sticky", "range")) == "range"


def test_a_choice_that_not_all_support_is_passed_over() -> None:
    assert elected(("mine", "a", "b"), ("b", "a"), ("b", "a")) == "b"


@pytest.mark.parametrize(
    ("names", "winner"),
    [
        (("range", "sticky"), "sticky"),
        (("roundrobin", "range"), "range"),
        (("cooperative-sticky", "range"), "range"),
        (("sticky", "cooperative-sticky"), "sticky"),
        (("Zed", "apple"), "apple"),
    ],
)
def test_between_equals_kafkas_choice_is_made(names: tuple[str, str], winner: str) -> None:
    """As a Kafka 4.3 answered."""
    assert elected(names, names[::-1]) == elected(names[::-1], names) == winner


def test_a_name_given_twice_counts_once() -> None:
    assert elected(("range", "range")) == "range"
    assert elected(("range", "range"), ("range",)) == "range"


def test_who_brings_less_narrows_what_others_may_bring() -> None:
    world = World()
    world.enter(protocols=("a", "b"))
    world.enter(protocols=("b",))
    assert world.join(protocols=("a",)).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocols=("a", "b")).error == ErrorCode.MEMBER_ID_REQUIRED
