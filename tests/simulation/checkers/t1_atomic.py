"""T1: a transaction is visible as a whole or not at all.

Of the records of a transaction that the final logs hold, over all partitions, read_committed shows either all or none.
That goes for every transaction, whatever its outcome, and for records whose send has an unknown outcome too.

Exempt   records that are not in the final logs any more: retention, DeleteRecords, compaction, deleted topics
         in topics that are compacted or have a retention, a record that is not shown: it may have gone between the two
         readings.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import data_of, sends_by_value
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import sender, shown
from simulation.history import History, Place, Send

Found = tuple[Place, int, Send]


def check(history: History) -> Iterator[str]:
    policies = Policies(history)
    senders = sends_by_value(history)
    shown_first: dict[str, Found] = {}
    hidden_first: dict[str, Found] = {}
    for place, log in history.final_logs.items():
        visible = {seen.offset for seen in log.committed}
        may_shrink = place.topic in policies.compacted or place.topic in policies.retained
        for seen in data_of(log.fetched, from_offset=log.log_start_offset):
            send = senders.get(seen.value) if seen.value is not None else None
            if send is None or send.transaction is None:
                continue
            if seen.offset in visible:
                shown_first.setdefault(send.transaction, (place, seen.offset, send))
            elif not may_shrink:
                hidden_first.setdefault(send.transaction, (place, seen.offset, send))
    for transaction, visible_one in shown_first.items():
        if transaction in hidden_first:
            yield (
                f"of transaction {transaction} read_committed shows {_found(visible_one)}, and not "
                f"{_found(hidden_first[transaction])}"
            )


def _found(found: Found) -> str:
    place, offset, send = found
    return f"{shown(send.value)} at {place} offset {offset} ({sender(send)})"
