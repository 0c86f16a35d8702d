"""D4: whatever is read was sent.

Each record that a poll, a final read or the log files show has exactly the key and value of a send to that topic and
partition (to that life of the topic, where the send named one) and its timestamp, and was not read before it was sent.

Exempt   the broker's own topics
         which send it was, for tombstones: any tombstone for the key will do
         the timestamp, where the client set none or the topic has the broker's own
That a send failed and is read nevertheless is P4's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from simulation.checkers.evidence.facts import INTERNAL, answered_s, data_of, of_kind, sends_by_value, succeeded
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import at, record, sender
from simulation.history import History, Place, Poll, Seen, Send


def check(history: History) -> Iterator[str]:
    judge = _Judge(history)
    reported: set[tuple[Place, Seen]] = set()
    for place, when_s, who, records in _readings(history):
        if place.topic.startswith(INTERNAL):
            continue
        for seen in records:
            why = judge.wrong(place, seen, when_s)
            if why and (place, seen) not in reported:
                reported.add((place, seen))
                yield f"{record(seen)} was read at {place} offset {seen.offset} by {who} at {at(when_s)}, {why}"


def _readings(history: History) -> Iterator[tuple[Place, float, str, Iterable[Seen]]]:
    for poll in succeeded(history, Poll):
        if poll.records:
            yield poll.place, answered_s(poll), poll.process, poll.records
    for place, log in history.final_logs.items():
        yield place, inf, "the final read", data_of(log.fetched)
        yield place, inf, "the final read_committed read", log.committed
        yield place, inf, "a walk over the log files", data_of(log.on_disk)


class _Judge:
    def __init__(self, history: History) -> None:
        self._by_value = sends_by_value(history)
        self._stamped = Policies(history).stamped
        self._tombstones: dict[tuple[str, int, bytes | None], float] = {}
        for send in of_kind(history, Send):
            if send.value is None:
                self._tombstones.setdefault((send.topic, send.partition, send.key), send.invoked_s)

    def wrong(self, place: Place, seen: Seen, when_s: float) -> str:
        """Empty: nothing."""
        if seen.value is None:
            sent_s = self._tombstones.get((place.topic, place.partition, seen.key), inf)
            return "" if sent_s <= when_s and sent_s < inf else "and nobody had sent a tombstone for the key there"
        send = self._by_value.get(seen.value)
        if send is None:
            return "and nobody sent it"
        if (send.topic, send.partition) != (place.topic, place.partition):
            return f"but was sent to {send.topic}-{send.partition} ({sender(send)})"
        if send.topic_id not in (None, place.topic_id):
            return f"but was sent to the topic's life {send.topic_id} ({sender(send)}), not {place.topic_id}"
        if send.invoked_s > when_s:
            return f"before it was sent ({sender(send)})"
        has_other_time = 0 <= send.timestamp_ms != seen.timestamp_ms and place.topic not in self._stamped
        if send.key != seen.key or has_other_time:
            sent = Seen(seen.offset, send.timestamp_ms, send.key, send.value)
            return f"but was sent as {record(sent)} ({sender(send)})"
        return ""
