"""T3: what a committed transaction wrote is visible in the end.

If EndTxn(commit) was acknowledged, each record of the transaction that was acknowledged is in the final read_committed
view, at the offset that was told. (Its offset commits: G1 and T6.)

Exempt   records that retention, DeleteRecords or compaction may have removed (``losses``)
         topics that may have been deleted since
         sends that were acknowledged without an offset
         between the answer and the markers they are not visible yet: so only the final view is judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import succeeded
from simulation.checkers.evidence.fates import Fates
from simulation.checkers.evidence.losses import Losses
from simulation.checkers.evidence.places import Places
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import at, sender, shown
from simulation.history import History, Send


def check(history: History) -> Iterator[str]:
    fates, policies = Fates(history), Policies(history)
    losses, places = Losses(history, policies, fates), Places(history, policies)
    visible = {place: {seen.offset for seen in log.committed} for place, log in history.final_logs.items()}
    for send in succeeded(history, Send):
        if send.transaction is None or send.offset < 0 or fates[send.transaction].fate != "committed":
            continue
        place = places.home(send)
        if place is None or send.offset in visible[place] or places.may_be_over(send):
            continue
        if not losses.may_be_gone(place, send.offset, send.key, send.value, send.transaction):
            yield (
                f"{shown(send.value)} of transaction {send.transaction} ({sender(send)}), committed at "
                f"{at(fates[send.transaction].committed_s)}, is not visible at {place} offset {send.offset} in the end"
            )
