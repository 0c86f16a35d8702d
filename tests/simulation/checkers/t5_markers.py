"""T5: along each log, a marker ends what one transaction of its producer has written, as that transaction ended.

Per producer id, in the order of the log, as read:

- transactional records are followed by a marker in the end
- the marker's epoch is not lower than theirs (KIP-890 raises it by one), and they all have the same
- they all belong to the same transaction: one marker never ends two, and nothing lands in the next one
- nothing outside of a transaction stands between them and the marker
- the marker commits if the transaction was committed, and aborts if it was aborted

Exempt   markers with no records before them: a coordinator that starts anew sends markers again, a partition may be
         in a transaction that never wrote to it, and log start or compaction may have taken the records
         batches of which compaction has left only the header
         markers of transactions with an unknown commit: either kind will do
A workload begins a transaction under a new name only when the one before has ended and all its sends are answered, or
after InitProducerId: with EndTxn before v5 a late send could reach the next transaction, in Kafka too (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import sends_by_value
from simulation.checkers.evidence.fates import Fates
from simulation.history import Batch, FinalLog, History, Send

EXPECTED = {"committed": "commit", "aborted": "abort"}


def check(history: History) -> Iterator[str]:
    senders, fates = sends_by_value(history), Fates(history)
    for log in history.final_logs.values():
        yield from _Walk(log, senders, fates).check()


class _Walk:
    def __init__(self, log: FinalLog, senders: dict[bytes, Send], fates: Fates) -> None:
        self._log = log
        self._senders = senders
        self._fates = fates
        self._open: dict[int, Batch] = {}
        """Per producer id, the first batch of the transaction that is not ended yet; and its name."""
        self._names: dict[int, str] = {}

    def check(self) -> Iterator[str]:
        for batch in self._log.fetched:
            if batch.producer_id < 0:
                continue
            if batch.control:
                yield from self._marker(batch)
            elif batch.records:
                yield from self._data(batch)
        for producer_id, first in self._open.items():
            yield f"{self._who(first)} has no marker for transaction {self._names.get(producer_id)} in the end"

    def _data(self, batch: Batch) -> Iterator[str]:
        first = self._open.get(batch.producer_id)
        if first is not None and not batch.is_transactional:
            yield f"{self._who(batch)} is not transactional, inside the transaction that began at {first.base_offset}"
        if not batch.is_transactional:
            return
        if first is None:
            self._open[batch.producer_id] = batch
        elif first.producer_epoch != batch.producer_epoch:
            yield f"{self._who(batch)} continues what began with epoch {first.producer_epoch} at {first.base_offset}"
        for seen in batch.records:
            send = self._senders.get(seen.value) if seen.value is not None else None
            if send is None or send.transaction is None:
                continue
            name = self._names.setdefault(batch.producer_id, send.transaction)
            if name != send.transaction:
                yield f"{self._who(batch)} is of transaction {send.transaction}, and {name} has no marker before it"
                self._names[batch.producer_id] = send.transaction

    def _marker(self, batch: Batch) -> Iterator[str]:
        first = self._open.pop(batch.producer_id, None)
        name = self._names.pop(batch.producer_id, None)
        if first is None:
            return
        if batch.producer_epoch < first.producer_epoch:
            yield f"{self._who(batch)} ends what was written with epoch {first.producer_epoch} at {first.base_offset}"
        if name is not None:
            expected = EXPECTED.get(self._fates[name].fate, batch.control)
            if batch.control != expected:
                yield f"{self._who(batch)} ends transaction {name}, which was {self._fates[name].fate}"

    def _who(self, batch: Batch) -> str:
        what = f"the {batch.control} marker" if batch.control else "the batch"
        return (
            f"{what} of producer {batch.producer_id}:{batch.producer_epoch} at {self._log.place} offset "
            f"{batch.base_offset}"
        )
