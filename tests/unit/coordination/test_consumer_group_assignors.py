"""``uniform`` and ``range``: everything is assigned, evenly, and as little as possible moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from headpond.coordination.groups.consumer.assignment import Target
from headpond.coordination.groups.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec
from headpond.model import TopicId
from unit.coordination.consumer_world import topic_id

uniform, ranges = ASSIGNORS["uniform"], ASSIGNORS["range"]
T = [topic_id(number) for number in range(6)]


def spec(members: dict[str, set[int]], counts: dict[int, int], last: dict[str, Target] | None = None) -> GroupSpec:
    """Topics by number; those without a count do not exist."""
    return GroupSpec(
        {
            member_id: MemberSpec(
                frozenset(T[each] for each in topics if each in counts), target=(last or {}).get(member_id, {})
            )
            for member_id, topics in members.items()
        },
        {T[each]: count for each, count in counts.items()},
    )


def alike(members: Iterable[str], topics: Iterable[int]) -> dict[str, set[int]]:
    """Everybody subscribes to all of them."""
    return {member_id: set(topics) for member_id in members}


def flat(assignment: dict[str, Target]) -> dict[tuple[TopicId, int], str]:
    """Fails if a partition has two owners."""
    found: dict[tuple[TopicId, int], str] = {}
    for member_id, target in assignment.items():
        for topic, partitions in target.items():
            for partition in partitions:
                assert (topic, partition) not in found
                found[topic, partition] = member_id
    return found


def loads(group: GroupSpec, assignment: dict[str, Target]) -> dict[str, int]:
    counts = Counter(flat(assignment).values())
    return {member_id: counts[member_id] for member_id in group.members}


def check_complete(group: GroupSpec, assignment: dict[str, Target]) -> None:
    wanted = {topic for member in group.members.values() for topic in member.topics}
    assert flat(assignment).keys() == {
        (each, index) for each in wanted for index in range(group.partition_counts[each])
    }
    for member_id, target in assignment.items():
        assert target.keys() <= group.members[member_id].topics
        assert all(target.values()), "a topic without partitions"


member_ids = st.sets(st.text("abcdef", min_size=1, max_size=2), min_size=1, max_size=9)
counts_of_topics = st.dictionaries(st.integers(0, 5), st.integers(0, 13), max_size=6)
subscriptions = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2), st.sets(st.integers(0, 5)), min_size=1, max_size=9
)


@given(member_ids, counts_of_topics)
def test_uniform_gives_members_with_the_same_topics_equal_shares(members: set[str], counts: dict[int, int]) -> None:
    group = spec(alike(members, counts), counts)
    assignment = uniform(group)
    check_complete(group, assignment)
    assert max(loads(group, assignment).values()) - min(loads(group, assignment).values()) <= 1


@given(member_ids, member_ids, counts_of_topics, counts_of_topics)
def test_uniform_moves_no_partition_that_balance_does_not_ask_for(
    before: set[str], after: set[str], old_counts: dict[int, int], grown: dict[int, int]
) -> None:
    counts = {each: max(count, grown.get(each, 0)) for each, count in old_counts.items()}
    last = uniform(spec(alike(before, old_counts), old_counts))
    group = spec(alike(after, counts), counts, last)
    assignment = uniform(group)
    check_complete(group, assignment)
    assert max(loads(group, assignment).values()) - min(loads(group, assignment).values()) <= 1
    kept = sum(flat(assignment)[each] == owner for each, owner in flat(last).items() if owner in after)
    share, odd = divmod(sum(counts.values()), len(after))
    held = sorted((sum(map(len, last.get(each, {}).values())) for each in after), reverse=True)
    assert kept == sum(min(count, share + (place < odd)) for place, count in enumerate(held))


@given(member_ids, counts_of_topics)
def test_uniform_repeats_itself_when_nothing_changed(members: set[str], counts: dict[int, int]) -> None:
    last = uniform(spec(alike(members, counts), counts))
    assert uniform(spec(alike(members, counts), counts, last)) == last


@given(subscriptions, counts_of_topics)
def test_uniform_with_mixed_subscriptions_leaves_nothing_that_one_move_would_improve(
    members: dict[str, set[int]], counts: dict[int, int]
) -> None:
    group = spec(members, counts)
    assignment = uniform(group)
    check_complete(group, assignment)
    load = loads(group, assignment)
    for (topic, _), owner in flat(assignment).items():
        for other, member in group.members.items():
            if topic in member.topics:
                assert load[owner] - load[other] <= 1


@given(subscriptions, subscriptions, counts_of_topics)
@settings(max_examples=50)
def test_uniform_with_mixed_subscriptions_settles(
    before: dict[str, set[int]], after: dict[str, set[int]], counts: dict[int, int]
) -> None:
    group = spec(after, counts, uniform(spec(before, counts)))
    assignment = uniform(group)
    check_complete(group, assignment)
    assert flat(uniform(spec(after, counts, assignment))) == flat(assignment)


def test_uniform_with_mixed_subscriptions_gives_to_those_who_have_no_other_choice() -> None:
    group = spec({"both": {0, 1}, "one": {0}}, {0: 4, 1: 2})
    assert loads(group, uniform(group)) == {"both": 3, "one": 3}


def test_uniform_keeps_what_is_held_when_a_member_with_other_topics_comes() -> None:
    last = uniform(spec({"a": {0}, "b": {0}}, {0: 4}))
    now = uniform(spec({"a": {0}, "b": {0}, "c": {1}}, {0: 4, 1: 4}, last))
    assert {each: now[each] for each in ("a", "b")} == last
    assert now["c"] == {T[1]: frozenset(range(4))}


def test_a_partition_that_two_targets_claim_is_assigned_once() -> None:
    double = {T[0]: frozenset((0, 1))}
    for members in ({"a": {0}, "b": {0}}, {"a": {0}, "b": {0, 1}}):
        group = spec(members, {0: 4, 1: 0}, {"a": double, "b": double})
        check_complete(group, uniform(group))


@given(subscriptions, counts_of_topics)
def test_range_cuts_each_topic_into_neighbouring_runs(members: dict[str, set[int]], counts: dict[int, int]) -> None:
    group = spec(members, counts)
    assignment = ranges(group)
    check_complete(group, assignment)
    for topic, count in group.partition_counts.items():
        subscribers = sorted(each for each, member in group.members.items() if topic in member.topics)
        runs = [sorted(assignment[each].get(topic, ())) for each in subscribers]
        if subscribers:
            assert [each for run in runs for each in run] == list(range(count))
            sizes = list(map(len, runs))
            assert sizes == sorted(sizes, reverse=True)
            assert sizes[0] - sizes[-1] <= 1


def test_range_puts_the_same_numbers_of_equal_topics_in_one_place() -> None:
    assignment = ranges(spec({"a": {0, 1}, "b": {0, 1}}, {0: 5, 1: 5}))
    assert all(target[T[0]] == target[T[1]] for target in assignment.values())


def test_range_puts_static_members_first_by_their_instance_id() -> None:
    topics = frozenset((T[0],))
    members = {
        "a": MemberSpec(topics),
        "z": MemberSpec(topics, instance_id="pod-0"),
        "y": MemberSpec(topics, instance_id="pod-1"),
    }
    assignment = ranges(GroupSpec(members, {T[0]: 3}))
    assert {each: set(target[T[0]]) for each, target in assignment.items()} == {"z": {0}, "y": {1}, "a": {2}}


def test_nobody_is_assigned_nothing() -> None:
    for assign in ASSIGNORS.values():
        assert assign(GroupSpec({}, {})) == {}
