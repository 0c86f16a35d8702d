"""Subscriptions by regular expression: RE2's syntax, and when topics are matched again."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.groups import GroupSettings
from penstock.coordination.groups.consumer.regex import InvalidRegex, Regex
from penstock.coordination.groups.consumer.regex.machine import PLACES_MAX, SLICE_STEPS
from penstock.coordination.slices import Work
from penstock.model import ErrorCode
from penstock.protocol.schema.consumer_group_records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from unit.coordination.consumer_world import World, no_wait

# --- syntax

REFUSED_BY_KAFKA = {
    "a)": "regexp/syntax: internal error",
    "(a": "missing closing )",
    "(?i:": "missing closing )",
    "*a": "missing argument to repetition operator",
    "(*a)": "missing argument to repetition operator",
    "a|+": "missing argument to repetition operator",
    "[z-a]": "invalid character class range",
    "[[:foo:]]": "invalid character class range",
    r"\p{foo}": "invalid character class range",
    "(?P<n>a)(?P<n>b)": "duplicate capture group name",
    "(?P<n": "invalid named capture",
    "(?<=a)": "invalid named capture",
    "(?<!a)": "invalid named capture",
    "(?P=n)": "invalid or unsupported Perl syntax",
    "(?=a)": "invalid or unsupported Perl syntax",
    "(?!a)": "invalid or unsupported Perl syntax",
    "(?z)": "invalid or unsupported Perl syntax",
    "(?i": "invalid or unsupported Perl syntax",
    "(?#x)": "invalid or unsupported Perl syntax",
    "(?>a)": "invalid or unsupported Perl syntax",
    "(?s-)": "invalid or unsupported Perl syntax",
    "(?-)": "invalid or unsupported Perl syntax",
    "a\\": "trailing backslash at end of expression",
    "a**": "invalid nested repetition operator",
    "a++": "invalid nested repetition operator",
    "a*+": "invalid nested repetition operator",
    "a{2}{3}": "invalid nested repetition operator",
    "a{2,1}": "invalid repeat count",
    "x{1001}": "invalid repeat count",
    "x{1,1001}": "invalid repeat count",
    "[": "missing closing ]",
    "[a": "missing closing ]",
    "[[:alpha:]": "missing closing ]",
    r"[a-\d]": "invalid escape sequence",
    **dict.fromkeys(
        [r"\1", r"\8", r"\C", r"\xg", r"\Z", r"\G", r"\K", r"\R", r"\X", r"\h", r"\e", r"\c", r"\u0041", r"\N"],
        "invalid escape sequence",
    ),
}
"""With the words of a real broker."""

TAKEN_BY_KAFKA = [
    *["(?P<n>a)", "(?P<1n>a)", "(?<n>a)", "(?i-s:a)", "(?i)(?-i)a", "(?U)a", "(?m)^a$", "a{,2}", "a{2", "a{2}?", "a+?"],
    *[r"\B", r"\07", r"\x41", r"\x{41}", r"\a", r"\_", r"\-", r"\é", "é", "", "|", "()", "(|a)", "a||b", "^*", "$+"],
    *[r"\b*", "x{0}", "x{0,}", r"\Qab", r"\Q*\E*", "(a{2}){2}", ".{1000}", r"\p{Lu}", r"\P{Lu}", r"[\pL]", r"\pZZ"],
    *[r"\p{Greek}", r"[\d-z]", "[]a]", "[^]a]", "[[:^alpha:]]", "[[:word:]]", "[a-z&&[^b]]", "(?:a{500}){500}"],
]


@pytest.mark.parametrize("text", REFUSED_BY_KAFKA)
def test_what_kafka_refuses_is_refused_in_its_words(text: str) -> None:
    with pytest.raises(InvalidRegex, match=f"^{re.escape(REFUSED_BY_KAFKA[text])}$"):
        Regex(text)


@pytest.mark.parametrize("text", TAKEN_BY_KAFKA)
def test_what_kafka_takes_is_taken(text: str) -> None:
    Regex(text)


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("orders", ["orders"], ["order", "orders2", "xorders"]),
        ("orders|pay.*", ["orders", "pay", "payments"], ["ordersx"]),
        (r"(?i)ORD\.ers", ["ord.ers", "OrD.Ers"], ["ordxers"]),
        ("(?i:a)b", ["ab", "Ab"], ["aB"]),
        ("(a(?i)b)c", ["abc", "aBc"], ["Abc", "abC"]),
        (r"\d+", ["0", "42"], ["", "4a"]),
        (r"\D\W\S", ["a-b", "_.x"], ["1-b", "aab"]),
        (r"[[:alpha:]]{2}", ["ab"], ["a1", "abc"]),
        (r"[[:^digit:]\d]", ["a", "1"], ["ab"]),
        (r"[^a-c]", ["d", "A", "-"], ["a", "b"]),
        (r"\p{Lu}\p{Ll}\pN", ["Ab1"], ["ab1", "AB1"]),
        (r"\p{Latin}\P{Latin}", ["a1"], ["aa"]),
        (r"\pP", ["-", ".", "_"], ["a"]),
        (r"\Qa.b\E", ["a.b"], ["axb"]),
        (r"\x61\x{62}\143", ["abc"], ["abC"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{1,2}", ["a", "aa"], ["", "aaa"]),
        ("a{2", [], ["a", "aa", "a2"]),
        ("x{300}", [], ["x" * 249]),
        ("x{0,300}", ["", "x" * 249], []),
        (r"\bab\b-\Bc", [], ["ab-c"]),
        (r"\bab\b-\bc", ["ab-c"], ["abc"]),
        (r"a\Bb", ["ab"], ["a"]),
        ("^a$", ["a"], ["ab"]),
        (r"\Aa\z", ["a"], ["ba"]),
        ("(^a|b)c", ["ac", "bc"], ["c"]),
        ("é|a", ["a"], ["b"]),
        ("(a|b)*c", ["c", "abbac"], ["abd"]),
        ("(a*)*", ["", "aaa"], ["b"]),
        ("()+", [""], ["a"]),
    ],
)
def test_names_match_as_a_whole(text: str, matching: list[str], others: list[str]) -> None:
    regex = Regex(text)
    assert [name for name in matching if not regex.matches(name)] == []
    assert [name for name in others if regex.matches(name)] == []


_pieces = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", "^", "$", r"\b", r"\B", "-"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda both: f"({both[0]}|{both[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])).map(lambda it: f"(?:{it[0]}){it[1]}"),
    ),
    max_leaves=6,
)


@given(_pieces, st.lists(st.text("ab-1", min_size=1, max_size=6), max_size=8))
def test_names_match_as_they_do_elsewhere(text: str, names: list[str]) -> None:
    ours, pythons = Regex(text), re.compile(text, re.ASCII)
    assert [ours.matches(name) for name in names] == [pythons.fullmatch(name) is not None for name in names]


@given(st.text(string.printable, max_size=12))
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        Regex(text).matches("orders")
    except InvalidRegex:
        pass


def test_an_expression_that_makes_others_backtrack_forever_costs_nothing_here() -> None:
    name = "a" * 240
    for text in ("(a+)+b", "(a|a)*b", "(.*)*(.*)*b", "(a?){100}a{100}b"):
        assert not Regex(text).matches(name)  # elsewhere it would take longer than the universe has existed


def test_an_expression_whose_machine_would_be_huge_is_refused() -> None:
    with pytest.raises(InvalidRegex, match="too large"):
        Regex("((a{0,200}b){0,200}c){0,200}")
    with pytest.raises(InvalidRegex, match="nests too deeply"):
        Regex("(" * 500 + ")" * 500)


MEAN = ".*a.{200}b"
"""Needs more states than are remembered: every character of every name costs some hundred steps."""


def mean_names(count: int) -> list[str]:
    return [f"{number * 7919**60:0240b}"[-240:].translate({48: "a", 49: "b"}) for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("text", "names"),
    [(MEAN, mean_names(10)), ("or.*", ["orders" + "s" * 40] * 10_000)],
    ids=["a mean expression", "many names"],
)
def test_looking_for_names_pauses_whatever_the_expression_and_however_many_there_are(
    text: str, names: list[str]
) -> None:
    regex = Regex(text)
    work = regex.matching(names)
    steps = [regex._reached]
    with pytest.raises(StopIteration) as finished:
        while True:
            next(work)
            steps.append(regex._reached)
    assert len(steps) > 10
    assert max(after - before for before, after in pairwise(steps)) <= SLICE_STEPS + PLACES_MAX
    pythons = re.compile(text)
    assert finished.value.value == [name for name in names if pythons.fullmatch(name)]


# --- subscriptions


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
        world.in_slices = lambda what, work, done: self.works.append((work, done))

    def take_slice(self) -> bool:
        """False: that was the last one."""
        work, done = self.works[0]
        try:
            next(work)
        except StopIteration as finished:
            del self.works[0]
            done(finished.value)
            return False
        return True


def world_with_long_lookup() -> tuple[World, UnderWay]:
    world = World(**dict.fromkeys(mean_names(10), 1))
    under_way = UnderWay(world)
    world.join("one", subscribed_topic_regex=MEAN)
    return world, under_way


def test_topics_are_looked_up_in_slices_and_written_when_all_are_found() -> None:
    world, under_way = world_with_long_lookup()
    expected = set(filter(Regex(MEAN).matches, mean_names(10)))
    slices = 1
    while under_way.take_slice():
        slices += 1
        world.drain()
        assert MEAN not in world.group().regexes
    world.drain()
    assert slices > 10
    assert world.group().regexes[MEAN].topics == expected


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
