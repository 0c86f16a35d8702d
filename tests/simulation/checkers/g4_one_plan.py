"""G4: the members of a classic generation follow one plan, of one leader.

All members that learned their part of the same generation of a group heard of the same leader, and no partition was
given to two of them.

Exempt   a member that learned its part twice, and static members that take each other's place (same instance id)
         groups that may have been deleted: their generations begin anew
         groups with members of the consumer protocol: classic ones among them hear of another leader each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from simulation.checkers.evidence.facts import of_kind, succeeded
from simulation.checkers.evidence.words import at
from simulation.history import DeleteOffsets, History, Joined


def check(history: History) -> Iterator[str]:
    joins = succeeded(history, Joined)
    exempt = {each.group for each in joins if each.protocol == "consumer"}
    exempt.update(each.group for each in of_kind(history, DeleteOffsets) if not each.topic and each.outcome != "failed")
    generations: dict[tuple[str, int], list[Joined]] = defaultdict(list)
    for joined in joins:
        if joined.group not in exempt:
            generations[joined.group, joined.epoch].append(joined)
    for members in generations.values():
        yield from _one_leader(members)
        yield from _disjoint(members)


def _one_leader(members: list[Joined]) -> Iterator[str]:
    named = [joined for joined in members if joined.leader]
    for joined in named:
        if joined.leader != named[0].leader:
            yield (
                f"{_member(joined)} heard that {joined.leader} leads it, and {_member(named[0])} that "
                f"{named[0].leader} does"
            )


def _disjoint(members: list[Joined]) -> Iterator[str]:
    owners: dict[tuple[str, int], Joined] = {}
    for joined in members:
        for topic, partition in joined.assignment:
            owner = owners.setdefault((topic, partition), joined)
            if (owner.instance or owner.member) != (joined.instance or joined.member):
                yield f"{topic}-{partition} was given to {_member(joined)} and to {_member(owner)}"


def _member(joined: Joined) -> str:
    return f"{joined.member} (generation {joined.epoch} of group {joined.group}, at {at(joined.invoked_s)})"
