"""T4: nobody who reads committed records sees those of a transaction before its commit was asked for.

No read_committed poll that was answered before EndTxn(commit) was first invoked has a value of that transaction.

Exempt   polls that overlap with the commit
         transactions without a commit that may have happened (T2 judges those).
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import sends_by_value
from simulation.checkers.evidence.fates import Fates
from simulation.checkers.evidence.views import committed_views
from simulation.checkers.evidence.words import at, sender, shown
from simulation.history import History


def check(history: History) -> Iterator[str]:
    fates = Fates(history)
    senders = sends_by_value(history)
    commit_invoked_s = {
        value: fates[send.transaction].commit_invoked_s
        for value, send in senders.items()
        if send.transaction is not None and not fates.is_excluded(send.transaction)
    }
    if not commit_invoked_s:
        return
    for view in committed_views(history):
        for seen in view.records:
            if seen.value is None or view.ended_s >= commit_invoked_s.get(seen.value, -1.0):
                continue
            send = senders[seen.value]
            yield (
                f"{view.reader} was given {shown(seen.value)} of transaction {send.transaction} ({sender(send)}) at "
                f"{view.place} offset {seen.offset} at {at(view.ended_s)}, before its commit was asked for at "
                f"{at(commit_invoked_s[seen.value])}"
            )
