"""P3: a producer that was fenced writes no more.

- Along each log, as read and on disk, the epochs of a producer id never decrease, markers included.
- Once an InitProducerId has been answered with an epoch, no transactional send with a smaller epoch of that producer
  id that is invoked afterwards is acknowledged.

Exempt   sends that overlap with the InitProducerId: they may have come before it
         sends without a transaction: nothing tells a partition of a new epoch before its first batch
         sends of another producer id, which the transactional id had before its epochs were used up.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import effect_end_s
from simulation.checkers.evidence.words import sender, shown, span
from simulation.history import Batch, Fenced, History, Send


def check(history: History) -> Iterator[str]:
    for place, log in history.final_logs.items():
        for batches, where in ((log.fetched, f"{place} as read"), (log.on_disk, f"{place} on disk")):
            yield from _epochs_grow(batches, where)
    yield from _late_sends(history)


def _epochs_grow(batches: tuple[Batch, ...], where: str) -> Iterator[str]:
    latest: dict[int, int] = {}
    for batch in batches:
        if batch.producer_id < 0:
            continue
        if batch.producer_epoch < latest.get(batch.producer_id, -1):
            yield (
                f"producer {batch.producer_id} has epoch {batch.producer_epoch} at offset {batch.base_offset} of "
                f"{where}, behind its epoch {latest[batch.producer_id]}"
            )
        else:
            latest[batch.producer_id] = batch.producer_epoch


def _late_sends(history: History) -> Iterator[str]:
    fences: dict[int, list[Fenced]] = {}
    for each in history.operations:
        if type(each) is Fenced and each.outcome == "ok" and each.producer_id >= 0:
            fences.setdefault(each.producer_id, []).append(each)
    for send in history.operations:
        if type(send) is not Send or send.outcome != "ok" or send.transaction is None or send.producer_epoch < 0:
            continue
        for fence in fences.get(send.producer_id, ()):
            if send.producer_epoch < fence.producer_epoch and effect_end_s(fence) < send.invoked_s:
                yield (
                    f"{shown(send.value)} was acknowledged at {send.topic}-{send.partition} offset {send.offset} for "
                    f"producer {send.producer_id}:{send.producer_epoch} ({sender(send)}), though {fence.process} had "
                    f"fenced it with epoch {fence.producer_epoch} ({span(fence)})"
                )
                break
