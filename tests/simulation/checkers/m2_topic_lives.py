"""M2: a topic that was deleted and made anew has another id, and nothing of what the old one had.

- No two acknowledged creations have the same topic id, and no id is seen under two names.
- No value is read under two topic ids, unless a deletion of the topic overlapped with its send: then a retry may have
  brought it to the new one, too.
- A value whose send was acknowledged before a creation was invoked is not read in the topic that it created.

Exempt   sends with an unknown outcome: they may have reached the new topic
         tombstones, which can't be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simulation.checkers.evidence.facts import data_of, effect_end_s, sends_by_value, succeeded
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import sender, shown, span
from simulation.history import AdminChange, History, Place, Poll, Seen, Send, TopicsSeen


def check(history: History) -> Iterator[str]:
    created: dict[str, AdminChange] = {}
    for change in succeeded(history, AdminChange):
        if change.kind == "create" and change.topic_id:
            before = created.setdefault(change.topic_id, change)
            if before is not change:
                yield (
                    f"topic id {change.topic_id} was given to {change.topic} ({span(change)}) and to {before.topic} "
                    f"({span(before)})"
                )
    yield from _names(history)
    yield from _values(history, created)


def _names(history: History) -> Iterator[str]:
    names: dict[str, str] = {}
    for seen in succeeded(history, TopicsSeen):
        for name, (topic_id, _) in seen.topics.items():
            if names.setdefault(topic_id, name) != name:
                yield f"topic id {topic_id} is that of {names[topic_id]} and that of {name} ({span(seen)})"


def _values(history: History, created: dict[str, AdminChange]) -> Iterator[str]:
    senders, policies = sends_by_value(history), Policies(history)
    lives: dict[bytes, str] = {}
    for place, records in _readings(history):
        creation = created.get(place.topic_id)
        created_s = creation.invoked_s if creation is not None else -1.0
        for seen in records:
            if seen.value is None:
                continue
            life = lives.get(seen.value)
            if life is None:
                lives[seen.value] = place.topic_id
                send = senders.get(seen.value)
                if send is not None and send.outcome == "ok" and effect_end_s(send) < created_s:
                    yield (
                        f"{shown(seen.value)} was acknowledged ({sender(send)}) before {place.topic} was created with "
                        f"id {place.topic_id} at {created_s:.3f} s, and is there at {place} offset {seen.offset}"
                    )
            elif life != place.topic_id and not _may_be_in_both(policies, senders.get(seen.value)):
                yield (
                    f"{shown(seen.value)} is at {place} offset {seen.offset} under the topic id {place.topic_id}, and "
                    f"was read under {life}"
                )


def _may_be_in_both(policies: Policies, send: Send | None) -> bool:
    return send is not None and policies.may_be_deleted_during(send.topic, send.invoked_s, effect_end_s(send))


def _readings(history: History) -> Iterator[tuple[Place, Iterable[Seen]]]:
    for poll in succeeded(history, Poll):
        if poll.records:
            yield poll.place, poll.records
    for place, log in history.final_logs.items():
        yield place, data_of(log.fetched)
        yield place, data_of(log.on_disk)
