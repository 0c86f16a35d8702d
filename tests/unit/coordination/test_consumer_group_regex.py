"""Subscriptions by regular expression: when topics are matched, and matched again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.consumer import TopicFacts
from headpond.coordination.groups.consumer.subscription import find_topics
from headpond.coordination.groups.consumer.topics import FoundByRegex
from headpond.coordination.slices import Work, finish_now
from headpond.model import ErrorCode, TopicId, patterns
from headpond.model.patterns import Pattern
from headpond.protocol.schema.consumer_group_records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from unit.coordination.consumer_world import World, no_wait
from unit.coordination.fixed_topics import FixedTopics

MEAN = ".*a.{200}b"
"""Every character of every name costs some hundred steps."""


def mean_names(count: int) -> list[str]:
    return [f"{number * 7919**60:0240b}"[-240:].translate({48: "a", 49: "b"}) for number in range(1, count + 1)]


def regex_records(world: World) -> list[tuple[str, list[str] | None]]:
    found = []
    for batch in world.batches:
        for key, value in batch:
            if isinstance(key, ConsumerGroupRegularExpressionKey):
                assert value is None or isinstance(value, ConsumerGroupRegularExpressionValue)
                found.append((key.regular_expression, None if value is None else value.topics))
    return found


def test_an_expression_is_resolved_after_the_join_and_assigned_with_the_next_heartbeat() -> None:
    world = World(**{"orders": 2, "orders.eu": 1, "payments": 1})
    response = world.join("one", subscribed_topic_regex="orders.*")
    assert (response.member_epoch, world.held(response)) == (1, {})
    assert regex_records(world) == [("orders.*", ["orders", "orders.eu"])]
    assert (world.group().epoch, world.group().state) == (2, "Assigning")
    response = world.beat("one", 1)
    assert (response.member_epoch, world.held(response)) == (2, {"orders": [0, 1], "orders.eu": [0]})


def test_a_bad_expression_is_refused() -> None:
    world = World(orders=2)
    assert world.error(lambda: world.join("one", subscribed_topic_regex="[")) == (
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        "SubscribedTopicRegex `[` is not a valid regular expression: missing closing ].",
    )
    world.join("one", "orders")
    assert world.error(lambda: world.beat("one", 2, subscribed_topic_regex="a**"))[0] == 128


def test_an_expression_that_is_known_is_not_resolved_again_for_the_next_member() -> None:
    world = World(orders=2)
    world.join("one", subscribed_topic_regex="ord.*")
    world.beat("one", 1)
    assert world.join("two", subscribed_topic_regex="ord.*").member_epoch == 3
    assert len(regex_records(world)) == 1


def test_names_and_expression_are_united() -> None:
    world = World(orders=1, payments=1, other=1)
    world.join("one", subscribed_topic_names=["payments"], subscribed_topic_regex="ord.*")
    assert world.held(world.beat("one", 2)) == {"orders": [0], "payments": [0]}


def test_new_topics_are_found_but_not_before_ten_seconds_have_passed() -> None:
    world = World(orders=1)
    world.join("one", subscribed_topic_regex="ord.*")
    world.beat("one", 1)
    world.put_topic("order2", 1)
    world.advance(10)
    assert world.beat("one", 2).member_epoch == 2
    assert len(regex_records(world)) == 1
    world.advance(0.001)
    world.beat("one", 2)
    assert regex_records(world)[-1] == ("ord.*", ["order2", "orders"])
    assert world.held(world.beat("one", 2)) == {"orders": [0], "order2": [0]}


def test_without_new_topics_expressions_are_resolved_when_their_interval_is_over() -> None:
    world = World(no_wait(consumer_session_timeout_ms=3_600_000), orders=1)
    world.join("one", subscribed_topic_regex="ord.*")
    world.beat("one", 1)
    world.advance(600)
    world.beat("one", 2)
    assert len(regex_records(world)) == 1
    world.advance(0.001)
    world.beat("one", 2)
    assert len(regex_records(world)) == 2
    assert world.group().epoch == 2  # nothing else has changed


def test_the_last_subscriber_takes_its_expression_with_it() -> None:
    world = World(orders=1, payments=1)
    world.join("one", subscribed_topic_regex="ord.*")
    world.join("two", subscribed_topic_regex="ord.*")
    world.leave("two")
    assert len(regex_records(world)) == 1
    world.leave("one")
    assert regex_records(world)[-1] == ("ord.*", None)
    assert (world.group().regexes, world.group().topic_names()) == ({}, set())


def test_another_expression_replaces_the_last_one() -> None:
    world = World(orders=1, payments=1)
    world.join("one", subscribed_topic_regex="ord.*")
    world.beat("one", 1)
    world.advance(11)
    response = world.beat("one", 2, subscribed_topic_regex="pay.*")
    assert world.held(response) == {}  # what is not wanted any more goes at once
    assert regex_records(world)[1:] == [("ord.*", None), ("pay.*", ["payments"])]
    response = world.beat("one", 2, owned={})
    assert (response.member_epoch, world.held(response)) == (3, {"payments": [0]})


def test_an_expression_that_comes_too_soon_after_the_last_resolution_waits_for_its_turn() -> None:
    world = World(orders=1, payments=1)
    world.join("one", subscribed_topic_regex="ord.*")
    world.join("two", subscribed_topic_regex="pay.*")
    assert "pay.*" not in world.group().regexes
    world.advance(11)
    world.beat("one", 1)
    assert world.group().regexes["pay.*"].topics == {"payments"}


def test_a_resolution_that_could_not_be_written_is_asked_for_again() -> None:
    world = World(orders=1)
    world.is_too_full = True
    world.join("one", subscribed_topic_regex="ord.*")
    world.is_too_full = False
    world.advance(9)
    world.beat("one", 1)
    assert "ord.*" not in world.group().regexes
    world.advance(1)
    world.beat("one", 1)
    assert world.group().regexes["ord.*"].topics == {"orders"}


class UnderWay:
    """What is looked up in slices, at the pace of the test."""

    def __init__(self, world: World) -> None:
        self.works: list[tuple[Work[Any], Callable[[Any], None]]] = []
        self._result: Any = None
        world.in_slices = lambda what, work, done: self.works.append((work, done))

    def take_slice(self) -> bool:
        """False: that was the last one."""
        work, done = self.works[0]
        try:
            job = work.send(self._result)
        except StopIteration as finished:
            del self.works[0]
            self._result = None
            done(finished.value)
            return False
        self._result = None if job is None else job()
        return True


@pytest.fixture(autouse=True)
def _one_name_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TEXTS_AT_ONCE", 1)


def world_with_long_lookup() -> tuple[World, UnderWay]:
    world = World(**dict.fromkeys(mean_names(10), 1))
    under_way = UnderWay(world)
    world.join("one", subscribed_topic_regex=MEAN)
    return world, under_way


def test_topics_are_looked_up_in_slices_and_written_when_all_are_found() -> None:
    world, under_way = world_with_long_lookup()
    expected = set(filter(Pattern(MEAN).matches, mean_names(10)))
    slices = 1
    while under_way.take_slice():
        slices += 1
        world.drain()
        assert MEAN not in world.group().regexes
    world.drain()
    assert slices > 10
    assert world.group().regexes[MEAN].topics == expected


def test_groups_that_look_for_the_same_in_the_same_topics_share_what_is_found() -> None:
    topics = FixedTopics({name: TopicFacts(TopicId(bytes(16)), 1) for name in ("orders", "payments")}, version=1)
    for topics.version in (1, 2):
        assert next(find_topics(["ord.*"], topics)) is not None  # a job
        assert finish_now(find_topics(["ord.*"], topics)).by_regex == {"ord.*": {"orders"}}
        assert list(find_topics(["ord.*"], topics)) == []  # nothing to do


def test_topics_of_few_expressions_are_remembered() -> None:
    found = FoundByRegex()
    for number in range(100):
        found.put(f"ord{number}", 1, frozenset())
    assert [number for number in range(100) if found.get(f"ord{number}", 1) is not None] == [*range(84, 100)]


def test_nobody_asks_for_a_lookup_again_that_is_under_way_for_long() -> None:
    world, under_way = world_with_long_lookup()
    for _ in range(3):
        assert under_way.take_slice()
        world.advance(9)
        world.beat("one", 1)
        assert len(under_way.works) == 1


def test_a_lookup_ends_with_the_last_member_that_wants_it() -> None:
    world, under_way = world_with_long_lookup()
    assert under_way.take_slice()
    world.leave("one")
    assert not under_way.take_slice()
    world.drain()
    assert regex_records(world) == [(MEAN, None)]  # as its leaving says


def test_a_lookup_ends_with_the_leadership() -> None:
    world, under_way = world_with_long_lookup()
    assert under_way.take_slice()
    world.consumer.close()
    assert not under_way.take_slice()


def test_a_topic_that_is_made_during_a_lookup_is_found_by_the_next() -> None:
    world, under_way = world_with_long_lookup()
    late = "a" * 1 + "c" * 200 + "b"
    assert under_way.take_slice()
    world.put_topic(late, 1)
    while under_way.take_slice():
        pass
    world.drain()
    assert late not in world.group().regexes[MEAN].topics
    world.advance(10.1)
    world.beat("one", 1)
    while under_way.take_slice():
        pass
    world.drain()
    assert late in world.group().regexes[MEAN].topics


def test_a_restart_keeps_what_expressions_stand_for() -> None:
    world = World(orders=1)
    world.join("one", subscribed_topic_regex="ord.*")
    world.beat("one", 1)
    world.restart()
    assert world.group().regexes["ord.*"].topics == {"orders"}
    assert world.group().is_subscribed_to("orders")
    assert not world.group().is_subscribed_to("payments")
    assert world.beat("one", 2).member_epoch == 2


def test_the_default_interval_is_kafkas() -> None:
    assert GroupSettings().consumer_regex_refresh_interval_ms == 600_000
