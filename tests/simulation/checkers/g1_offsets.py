"""G1: a group's committed offset is the last acknowledged commit or one that may have come later, never an earlier one.

Per (group, topic, partition) the commits are writes of a register, OffsetFetch and the group's final states (before and
after the restart) are its reads. A read that tells an offset is right if some write of that offset

    - may have been in effect when the read ended, and
    - was not certainly overwritten: no other write began after it had ended, and was in effect before the read began.

No commit (-1) is the state at the start, and what a deletion of the group, of its offsets or of the topic leaves.
A write with an unknown outcome never ends; what a read has seen of it makes it as good as acknowledged: no later read
may go back behind it.

A transaction's commit is written when it is sent, and takes effect at some time after EndTxn(commit) was asked for. An
acknowledged EndTxn makes it certain at the end, and for readers that wait for stable offsets (``requires_stable``) from
the answer on. Of a plain commit and a transaction's the one that was written later counts (KIP-98; ``groups/offsets``).

Exempt   commits that failed, or whose transaction was certainly not committed: they are no writes (see T6)
         the expiry of offsets: it is taken for longer than a run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from math import inf

from simulation.checkers.evidence.register import Read, Register, Write
from simulation.checkers.evidence.registers import registers
from simulation.checkers.evidence.words import at
from simulation.history import History


def check(history: History) -> Iterator[str]:
    for (group, topic, partition), register in registers(history).items():
        _learn_from_reads(register)
        where = f"of group {group} for {topic}-{partition}"
        judge = _Judge(register)
        for read in register.reads:
            why = judge.wrong(read)
            if why:
                yield f"{read.who} was told offset {read.offset} {where}, {why}"


def _candidates(register: Register, read: Read) -> list[Write]:
    return [write for write in register.by_offset.get(read.offset, ()) if write.visible_s <= read.ended_s]


def _learn_from_reads(register: Register) -> None:
    """Whatever can be only one write was in effect by the end of the read."""
    for read in register.reads:
        candidates = _candidates(register, read)
        if len(candidates) == 1:
            seen = candidates[0]
            seen.ended_s = min(seen.ended_s, read.ended_s)
            seen.certain_s = min(seen.certain_s, read.ended_s)
            seen.stable_s = min(seen.stable_s, read.ended_s)


class _Judge:
    def __init__(self, register: Register) -> None:
        self._register = register
        self._certain = _Certain([(write.certain_s, write) for write in register.writes])
        self._stable = _Certain([(write.stable_s, write) for write in register.writes])

    def wrong(self, read: Read) -> str:
        """Empty: nothing."""
        candidates = _candidates(self._register, read)
        if not candidates:
            return "which nobody had committed"
        certain = self._stable if read.is_stable else self._certain
        latest = certain.latest_by(read.invoked_s)
        if latest is None or max(write.ended_s for write in candidates) >= latest.invoked_s:
            return ""
        return f"though {latest.what} had come after that, at {at(latest.invoked_s)} to {at(latest.ended_s)}"


class _Certain:
    """Which write that is in effect for certain began last."""

    def __init__(self, writes: list[tuple[float, Write]]) -> None:
        writes = sorted((each for each in writes if each[0] < inf), key=lambda each: each[0])
        self._moments = [moment_s for moment_s, _ in writes]
        self._latest = list(accumulate((write for _, write in writes), _later))

    def latest_by(self, moment_s: float) -> Write | None:
        slot = bisect_left(self._moments, moment_s) - 1
        return self._latest[slot] if slot >= 0 else None


def _later(one: Write, other: Write) -> Write:
    return other if other.invoked_s > one.invoked_s else one
