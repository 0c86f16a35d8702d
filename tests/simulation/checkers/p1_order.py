"""P1: acknowledged records lie in the log in the order in which they were sent.

- Of one producer: an idempotent or transactional send has a larger offset than every earlier one (by ``order``) of its
  process for that partition, if both are ok.
- Of all: a send has a larger offset than every one with acks=-1 that was acknowledged before it was invoked.

Exempt   plain sends of a process that overlap: a retry may overtake. Only the second rule judges them
         acks=0 and acks=1 as the earlier one of the second rule: its offset is free again after a power cut
         sends that did not name the life of a topic, if the topic was ever deleted: offsets begin anew
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from operator import attrgetter

from simulation.checkers.evidence.facts import answered_s, succeeded
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import sender, shown
from simulation.history import History, Send


def check(history: History) -> Iterator[str]:
    policies = Policies(history)
    by_place: dict[tuple[str, str | None, int], list[Send]] = defaultdict(list)
    for send in succeeded(history, Send):
        if send.offset >= 0 and (send.topic_id is not None or not policies.was_ever_deleted(send.topic)):
            by_place[send.topic, send.topic_id, send.partition].append(send)
    for sends in by_place.values():
        yield from _by_producer(sends)
        yield from _by_time(sends)


def _by_producer(sends: Iterable[Send]) -> Iterator[str]:
    by_process: dict[str, list[Send]] = defaultdict(list)
    for send in sends:
        if send.is_idempotent or send.transaction is not None:
            by_process[send.process].append(send)
    for of_process in by_process.values():
        highest: Send | None = None
        for send in sorted(of_process, key=attrgetter("order")):
            if highest is not None and send.offset <= highest.offset:
                yield f"{_at(send)}, though {send.process} had sent {_at(highest)} before it"
            else:
                highest = send


def _by_time(sends: Iterable[Send]) -> Iterator[str]:
    """Sweeps over the invocations; ``ended`` holds what was sent before and may be acknowledged by then."""
    ended: list[tuple[float, int, Send]] = []
    highest: Send | None = None
    for number, send in enumerate(sorted(sends, key=attrgetter("invoked_s"))):
        while ended and ended[0][0] < send.invoked_s:
            done = heappop(ended)[2]
            if highest is None or done.offset > highest.offset:
                highest = done
        if highest is not None and send.offset <= highest.offset:
            yield f"{_at(send)}, though {_at(highest)} was acknowledged before it was sent"
        if send.acks == -1:
            heappush(ended, (answered_s(send), number, send))


def _at(send: Send) -> str:
    return f"{shown(send.value)} at {send.topic}-{send.partition} offset {send.offset} ({sender(send)})"
