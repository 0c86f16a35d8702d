"""D1: what was acknowledged is there in the end.

A send with acks=-1 that ended ok is in the final log, at the offset that was told, with its key, value and timestamp.
One that was acknowledged without an offset (a retry that the broker knew already) is anywhere in it.

Exempt   acks=0 and acks=1: a power cut may take them back
         records that retention, DeleteRecords or compaction may have removed (``losses``)
         sends to a topic that may have been deleted since
         the timestamp, where the client set none or the topic has the broker's own
Records of an aborted transaction stay in the log, unless it is compacted: they are not exempt.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import data_at, succeeded
from simulation.checkers.evidence.fates import Fates
from simulation.checkers.evidence.losses import Losses
from simulation.checkers.evidence.places import Places
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import record, sender, shown
from simulation.history import History, Place, Seen, Send


def check(history: History) -> Iterator[str]:
    policies = Policies(history)
    losses = Losses(history, policies, Fates(history))
    places = Places(history, policies)
    held = data_at(history)
    values = {place: {seen.value for seen in of_place.values()} for place, of_place in held.items()}
    for send in succeeded(history, Send):
        if send.acks != -1 or places.may_be_over(send):
            continue
        place = places.home(send)
        if place is None:
            yield f"{_acknowledged(send)} in {send.topic}-{send.partition}, of which there is no log in the end"
        elif send.offset < 0:
            if send.value not in values[place] and not _may_miss(history, policies, place):
                yield f"{_acknowledged(send)} in {place}, which does not hold it in the end"
        elif (found := held[place].get(send.offset)) is None:
            if not losses.may_be_gone(place, send.offset, send.key, send.value, send.transaction):
                yield f"{_acknowledged(send)} at {place} offset {send.offset}, where nothing is in the end"
        elif not _is_it(send, found, is_stamped=place.topic in policies.stamped):
            sent = Seen(send.offset, send.timestamp_ms, send.key, send.value)
            yield (
                f"{record(sent)} was acknowledged ({sender(send)}) at {place} offset {send.offset}, "
                f"where {record(found)} is in the end"
            )


def _acknowledged(send: Send) -> str:
    return f"{shown(send.value)} was acknowledged ({sender(send)})"


def _may_miss(history: History, policies: Policies, place: Place) -> bool:
    return place.topic in policies.compacted or history.final_logs[place].log_start_offset > 0


def _is_it(send: Send, found: Seen, *, is_stamped: bool) -> bool:
    if (send.key, send.value) != (found.key, found.value):
        return False
    return is_stamped or send.timestamp_ms < 0 or send.timestamp_ms == found.timestamp_ms
