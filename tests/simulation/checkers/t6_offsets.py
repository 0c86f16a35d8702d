"""T6: the offsets that a transaction commits for a group count if and only if it is committed.

- An offset that only certainly uncommitted transactions (or commits that failed) would have set is told to nobody: by
  no OffsetFetch, and not in the group's final states.
- The offset of an acknowledged commit in a committed transaction is in the group's final states, if no other commit or
  deletion for it overlaps or follows. (G1 judges the rest.)

Exempt   an offset that another commit may have set, too
         offsets of topics that may have been deleted since.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import of_kind
from simulation.checkers.evidence.fates import Fates
from simulation.checkers.evidence.register import NOTHING, Key, Register
from simulation.checkers.evidence.registers import registers
from simulation.checkers.evidence.words import span
from simulation.history import CommitOffset, History


def check(history: History) -> Iterator[str]:
    commits = [each for each in of_kind(history, CommitOffset) if each.transaction is not None]
    if not commits:
        return
    fates, known = Fates(history), registers(history)
    reported: set[tuple[Key, int]] = set()
    for commit in commits:
        key = commit.group, commit.topic, commit.partition
        register = known.get(key)
        if register is None or (key, commit.offset) in reported:
            continue
        assert commit.transaction is not None
        fate = fates[commit.transaction].fate
        if fate == "aborted" or commit.outcome == "failed":
            why = _told(commit, register)
        elif fate == "committed" and commit.outcome == "ok":
            why = _lost(commit, register)
        else:
            continue
        if why:
            reported.add((key, commit.offset))
            yield (
                f"offset {commit.offset} of group {commit.group} for {commit.topic}-{commit.partition} "
                f"({commit.process}, {span(commit)}, transaction {commit.transaction}) {why}"
            )


def _told(commit: CommitOffset, register: Register) -> str:
    if commit.offset == NOTHING or commit.offset in register.by_offset:
        return ""
    for read in register.reads:
        if read.offset == commit.offset:
            return f"was never committed, and was told to {read.who}"
    return ""


def _lost(commit: CommitOffset, register: Register) -> str:
    others = [write for write in register.writes if write.ended_s >= commit.invoked_s]
    if len(others) != 1:
        return ""
    for read in register.reads:
        if read.is_final and read.offset != commit.offset:
            return f"was committed, and {read.who} was told {read.offset}"
    return ""
