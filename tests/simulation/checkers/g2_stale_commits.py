"""G2: a commit of a generation or member epoch that is over is refused.

Classic    Once a member has heard of a generation, a commit that is invoked later with a lower one is not
           acknowledged, unless somebody has heard of that lower one again since (a forgotten group begins anew).
Consumer   (KIP-848, KIP-1251) A commit with an older epoch of the member is right for a partition that it has held
           since then, also while it gives it up. It has given it up for certain once it was told an epoch without the
           partition, and a higher one after that: then a commit for it with an epoch below the first of the two is
           not acknowledged.

Exempt   commits of no member (epoch -1), plain or in a transaction
         groups that may have been deleted: their generations begin anew
         members of the classic protocol in groups that have members of the other one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from simulation.checkers.evidence.facts import of_kind, succeeded
from simulation.checkers.evidence.words import at, span
from simulation.history import CommitOffset, DeleteOffsets, History, Joined


def check(history: History) -> Iterator[str]:
    joins = [each for each in of_kind(history, Joined) if each.outcome != "failed"]
    exempt = {each.group for each in of_kind(history, DeleteOffsets) if not each.topic and each.outcome != "failed"}
    modern = {each.group for each in joins if each.protocol == "consumer"}
    classic: dict[str, list[Joined]] = defaultdict(list)
    of_member: dict[tuple[str, str], list[Joined]] = defaultdict(list)
    last_heard: dict[tuple[str, int], int] = {}
    for joined in sorted(joins, key=_heard_s):
        last_heard[joined.group, joined.epoch] = len(classic[joined.group])
        classic[joined.group].append(joined)
        of_member[joined.group, joined.member].append(joined)
    for commit in succeeded(history, CommitOffset):
        if commit.epoch < 0 or commit.group in exempt:
            continue
        if commit.group in modern:
            yield from _consumer(commit, of_member[commit.group, commit.member])
        else:
            yield from _classic(commit, classic[commit.group], last_heard)


def _classic(commit: CommitOffset, joins: list[Joined], last_heard: dict[tuple[str, int], int]) -> Iterator[str]:
    start = last_heard.get((commit.group, commit.epoch), -1) + 1
    end = bisect_left(joins, commit.invoked_s, lo=min(start, len(joins)), key=_heard_s)
    newest = max(joins[start:end], key=lambda joined: joined.epoch, default=None)
    if newest is not None and newest.epoch > commit.epoch:
        yield (
            f"{_commit(commit)} with generation {commit.epoch}, though {newest.member} had heard of generation "
            f"{newest.epoch} at {at(newest.invoked_s)}"
        )


def _heard_s(joined: Joined) -> float:
    return joined.invoked_s


def _consumer(commit: CommitOffset, joins: list[Joined]) -> Iterator[str]:
    wanted = commit.topic, commit.partition
    without: Joined | None = None
    for joined in joins:
        if joined.invoked_s >= commit.invoked_s or joined.protocol == "classic":
            return
        if without is not None and joined.epoch > without.epoch:
            yield (
                f"{_commit(commit)} with member epoch {commit.epoch}, though it had been told epoch {without.epoch} "
                f"without the partition at {at(without.invoked_s)}, and epoch {joined.epoch} after that"
            )
            return
        if without is None and joined.epoch > commit.epoch and wanted not in joined.assignment:
            without = joined


def _commit(commit: CommitOffset) -> str:
    return (
        f"group {commit.group} took the commit of {commit.topic}-{commit.partition} offset {commit.offset} by member "
        f"{commit.member} ({commit.process}, {span(commit)})"
    )
