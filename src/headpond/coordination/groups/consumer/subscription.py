"""What a group is subscribed to: when its epoch has to move, and when regular expressions are looked up again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from headpond.coordination.groups.consumer import records
from headpond.coordination.groups.consumer.group import ConsumerGroup, Draft, ResolvedRegex
from headpond.coordination.groups.consumer.topics import TopicsView, metadata_hash
from headpond.coordination.slices import Work
from headpond.model import BrokerError, ErrorCode
from headpond.model.patterns import InvalidPattern, compiled

REGEX_REFRESH_MS_MIN = 10_000
"""A fleet that restarts with a new expression, or a tool that makes topics one by one, must not have every topic
matched again and again."""


def bump_epoch(draft: Draft, topics: TopicsView, *, is_forced: bool) -> None:
    """The next epoch, if ``is_forced`` or if the topics are not what they were at the last one."""
    group = draft.group
    found = metadata_hash(group.topic_names(), topics)
    if is_forced or found != group.metadata_hash:
        draft.write(records.group_epoch(group.group_id, group.epoch + 1, found))
    if group.has_partition_metadata:
        draft.write(records.no_partition_metadata(group.group_id))


def drop_unused_regexes(draft: Draft, candidates: Iterable[str]) -> None:
    group_id = draft.group.group_id
    gone = sorted({regex for regex in candidates if regex and regex not in draft.group.regex_counts})
    draft.write(*(records.no_regex(group_id, regex) for regex in gone))


def check_regex(text: str) -> None:
    try:
        compiled(text)
    except InvalidPattern as invalid:
        raise BrokerError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{text}` is not a valid regular expression: {invalid}.",
        ) from None


def regexes_are_due(
    group: ConsumerGroup,
    resolved: Mapping[str, ResolvedRegex],
    *,
    new_topics_version: int,
    interval_ms: int,
    now_ms: int,
) -> bool:
    """``resolved``: as they were before this decision, so that who goes from one expression to the next and on waits.
    ``new_topics_version``: of the metadata when a topic was last created."""
    if not group.regex_counts:
        return False
    if not resolved:
        return True
    last_ms = max(each.timestamp_ms for each in resolved.values())
    if last_ms <= now_ms <= last_ms + REGEX_REFRESH_MS_MIN:
        return False
    return (
        group.regex_counts.keys() != resolved.keys()
        or min(each.version for each in resolved.values()) < new_topics_version
        or not last_ms <= now_ms <= last_ms + interval_ms
    )


class FoundTopics(NamedTuple):
    by_regex: Mapping[str, frozenset[str]]
    version: int
    """Of the topics that were looked at."""


def find_topics(regexes: Iterable[str], topics: TopicsView) -> Work[FoundTopics]:
    """Of this moment: those that are made while it is under way are found the next time. Groups that look for the same
    in the same topics share what was found."""
    names, version = tuple(topics.names()), topics.version
    found = {}
    for regex in regexes:
        known = topics.found.get(regex, version)
        if known is None:
            known = frozenset((yield from _matching(regex, names)))
            topics.found.put(regex, version, known)
        found[regex] = known
    return FoundTopics(found, version)


def _matching(regex: str, names: Sequence[str]) -> Work[list[str]]:
    try:
        pattern = compiled(regex)
    except InvalidPattern:  # a broker that takes more than we do let it in: it matches nothing here
        return []
    found: list[str] = []
    for portion in pattern.portions(names):
        found += yield partial(pattern.matching, portion)
    return found


def put_found_topics(draft: Draft, found: FoundTopics, topics: TopicsView, now_ms: int) -> None:
    """For the expressions that are still in use; those that came later have their turn later."""
    group_id, known = draft.group.group_id, draft.group.regexes
    has_changed = False
    for regex in sorted(draft.group.regex_counts.keys() & found.by_regex.keys()):
        names = found.by_regex[regex]
        has_changed |= names != (known[regex].topics if regex in known else frozenset())
        draft.write(records.resolved_regex(group_id, regex, names, version=found.version, timestamp_ms=now_ms))
    bump_epoch(draft, topics, is_forced=has_changed)
