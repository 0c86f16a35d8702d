"""How each transaction ended, as far as its clients can know.

committed   a commit was acknowledged
aborted     it certainly was not committed: nobody asked, or each request for it certainly failed. That covers those
            that time out, and those that are open still
unknown     a commit was asked for, and its outcome is not known; also if an abort was acknowledged later
"""

from __future__ import annotations

from math import inf
from typing import Literal, NamedTuple

from simulation.checkers.evidence.facts import effect_end_s, of_kind
from simulation.history import EndTransaction, History

Fate = Literal["committed", "aborted", "unknown"]


class Ending(NamedTuple):
    fate: Fate
    commit_invoked_s: float = inf
    """When a commit was first asked for: nothing of it may be seen before."""
    committed_s: float = inf
    """When a commit was first acknowledged."""


NEVER_COMMITTED = Ending("aborted")


class Fates:
    def __init__(self, history: History) -> None:
        self._endings: dict[str, Ending] = {}
        for end in of_kind(history, EndTransaction):
            if end.is_commit and end.outcome != "failed":
                before = self._endings.get(end.transaction, NEVER_COMMITTED)
                is_ok = end.outcome == "ok" or before.fate == "committed"
                self._endings[end.transaction] = Ending(
                    "committed" if is_ok else "unknown",
                    min(before.commit_invoked_s, end.invoked_s),
                    min(before.committed_s, effect_end_s(end)),
                )

    def __getitem__(self, transaction: str) -> Ending:
        return self._endings.get(transaction, NEVER_COMMITTED)

    def is_certain(self, transaction: str | None) -> bool:
        """Whether what was sent in it counts for certain; outside of transactions it does."""
        return transaction is None or self[transaction].fate == "committed"

    def is_excluded(self, transaction: str | None) -> bool:
        """Whether what was sent in it certainly never counts."""
        return transaction is not None and self[transaction].fate == "aborted"
