"""M3: an acknowledged change of topics is in every later Metadata answer.

If a topic was created, deleted or given more partitions, and that was acknowledged before Metadata was asked for, the
answer has the topic with its id and its number of partitions, or does not have it.

Exempt   if another such change of the topic that did not certainly fail overlaps with the change, or began before the
         Metadata answer came: then nothing is sure
         changes of configs and DeleteRecords: Metadata does not tell of them.
``TopicsSeen`` has to list all topics.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from math import inf

from simulation.checkers.evidence.facts import answered_s, effect_end_s, of_kind, succeeded
from simulation.checkers.evidence.words import span
from simulation.history import AdminChange, History, TopicsSeen

VISIBLE = ("create", "delete", "partitions")


def check(history: History) -> Iterator[str]:
    by_topic: dict[str, list[AdminChange]] = defaultdict(list)
    for change in of_kind(history, AdminChange):
        if change.kind in VISIBLE and change.outcome != "failed":
            by_topic[change.topic].append(change)
    answers = succeeded(history, TopicsSeen)
    for topic, changes in by_topic.items():
        changes.sort(key=_invoked_s)
        is_alone = _alone(changes)
        for answer in answers:
            last = bisect_right(changes, answered_s(answer), key=_invoked_s) - 1
            if last < 0 or not is_alone[last] or effect_end_s(changes[last]) >= answer.invoked_s:
                continue
            why = _wrong(changes[last], answer.topics.get(topic))
            if why:
                yield (
                    f"{answer.process} ({span(answer)}) was told of topic {topic} {why} by {changes[last].process} "
                    f"({span(changes[last])})"
                )


def _invoked_s(change: AdminChange) -> float:
    return change.invoked_s


def _alone(changes: list[AdminChange]) -> list[bool]:
    """Whether all earlier ones had come about when the change began."""
    alone = []
    latest_s = -inf
    for change in changes:
        alone.append(latest_s < change.invoked_s)
        latest_s = max(latest_s, effect_end_s(change))
    return alone


def _wrong(change: AdminChange, told: tuple[str, int] | None) -> str:
    """Empty: nothing."""
    if change.kind == "delete":
        return "" if told is None else f"that it is there with id {told[0]}, after it was deleted"
    if told is None:
        return "that it is not there, after the change (" + change.kind + ")"
    if change.topic_id and told[0] != change.topic_id:
        return f"that its id is {told[0]}, after it was created with {change.topic_id}"
    if change.partitions > 0 and told[1] != change.partitions:
        return f"that it has {told[1]} partitions, after it was given {change.partitions}"
    return ""
