"""T2: nothing of an aborted transaction is ever given to a read_committed reader.

No value that was sent in a transaction that was certainly not committed (nobody asked for it, or every request for it
failed) is in a read_committed poll or in the final read_committed view.

Exempt   transactions whose commit has an unknown outcome (T1 judges those)
         read_uncommitted readers: they may see it
         tombstones, which can't be told apart.
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
    aborted = {value: send for value, send in sends_by_value(history).items() if fates.is_excluded(send.transaction)}
    if not aborted:
        return
    for view in committed_views(history):
        for seen in view.records:
            if seen.value in aborted:
                send = aborted.pop(seen.value)
                yield (
                    f"{shown(seen.value)} of the aborted transaction {send.transaction} ({sender(send)}) was given at "
                    f"{view.place} offset {seen.offset} to {view.reader} at {at(view.ended_s)}"
                )
