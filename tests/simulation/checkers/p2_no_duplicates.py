"""P2: an idempotent or transactional producer's record is at most once in a log.

- Of each value that such a producer sent there is at most one record, as read and on disk.
- Along a log the sequence numbers of each (producer id, epoch) strictly grow.

Exempt   plain sends: their retries may be there twice
         values of tombstones, which can't be told apart (their sequence numbers can)
         markers, and batches that coordinators write on behalf of a producer: they have no sequence numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import data_of, sends_by_value
from simulation.checkers.evidence.words import sender, shown
from simulation.history import Batch, History, Send


def check(history: History) -> Iterator[str]:
    exact = {
        value: send
        for value, send in sends_by_value(history).items()
        if send.is_idempotent or send.transaction is not None
    }
    for place, log in history.final_logs.items():
        for batches, where in ((log.fetched, f"{place} as read"), (log.on_disk, f"{place} on disk")):
            yield from _values(batches, where, exact)
            yield from _sequences(batches, where)


def _values(batches: tuple[Batch, ...], where: str, exact: dict[bytes, Send]) -> Iterator[str]:
    first: dict[bytes, int] = {}
    for seen in data_of(batches):
        if seen.value is None or seen.value not in exact:
            continue
        if first.setdefault(seen.value, seen.offset) != seen.offset:
            yield (
                f"{shown(seen.value)} ({sender(exact[seen.value])}) is twice in {where}: "
                f"at offset {first[seen.value]} and at {seen.offset}"
            )


def _sequences(batches: tuple[Batch, ...], where: str) -> Iterator[str]:
    latest: dict[tuple[int, int], int] = {}
    for batch in batches:
        if batch.control or batch.producer_id < 0 or batch.base_sequence < 0:
            continue
        producer = batch.producer_id, batch.producer_epoch
        if batch.base_sequence <= latest.get(producer, -1):
            yield (
                f"producer {producer[0]}:{producer[1]} has sequence {batch.base_sequence} at offset "
                f"{batch.base_offset} of {where}, behind its sequence {latest[producer]}"
            )
        latest[producer] = batch.base_sequence + batch.last_offset - batch.base_offset
