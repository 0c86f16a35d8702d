"""G3: a partition has at most one owner in a group at any time.

The times for which two members believe that they own a partition never overlap; that one ends at the moment at which
the other begins is no overlap.

Exempt   two members with the same group.instance.id: the later one takes the place of the other, which learns of it
         with its next request.
A member believes it from the answer that gave it the partition until it begins to give it up, or until its own session
timeout has gone by since it sent the last heartbeat that was answered ok: whoever hears nothing has to assume that it
was put out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import inf

from simulation.checkers.evidence.words import at
from simulation.history import History, Ownership


def check(history: History) -> Iterator[str]:
    owners: dict[tuple[str, str, int], list[Ownership]] = defaultdict(list)
    for each in history.ownerships:
        owners[each.group, each.topic, each.partition].append(each)
    for (group, topic, partition), in_turn in owners.items():
        in_turn.sort(key=lambda each: (each.from_s, _to_s(each)))
        lasting: dict[str, Ownership] = {}
        """Per member (or instance), the one that lasts longest."""
        for each in in_turn:
            me = each.instance or each.member
            for name, other in list(lasting.items()):
                if _to_s(other) <= each.from_s:
                    del lasting[name]
                elif name != me and _to_s(each) > each.from_s:
                    yield (
                        f"{each.member} owned {topic}-{partition} in group {group} from {_span(each)}, and "
                        f"{other.member} from {_span(other)}"
                    )
            if me not in lasting or _to_s(each) > _to_s(lasting[me]):
                lasting[me] = each


def _to_s(ownership: Ownership) -> float:
    return inf if ownership.to_s is None else ownership.to_s


def _span(ownership: Ownership) -> str:
    return f"{at(ownership.from_s)} to {at(_to_s(ownership))}"
