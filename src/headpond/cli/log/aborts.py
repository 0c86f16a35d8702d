"""Whether the aborted transactions of a partition have their entries in its transaction indexes.

A reader of committed records leaves out what these entries name, and nothing else: where one is missing, aborted
records are returned. The file of a segment in which nothing was aborted does not exist, so one that was lost is found
only by the markers in the log. Feed every batch of the partition in order; it takes memory for the transactions that
are open at one time. Behind a gap that compaction has left nobody knows what was open: its end may be gone.

A broker notes entries together with the recovery point; behind it they may still be on their way, and a start makes
them from the log.
"""

from __future__ import annotations

from collections.abc import Iterable

from headpond.cli.log.batches import Batch
from headpond.protocol.records.control import read_end_txn_marker
from headpond.protocol.records.errors import CorruptBatch
from headpond.storage.producers.txn_index import AbortedTxn

EVERYTHING = 1 << 63


class AbortedCheck:
    def __init__(self, promised_end_offset: int = EVERYTHING) -> None:
        self._promised_end_offset = promised_end_offset
        self._next_offset = 0
        self._open: set[int] = set()  # producers with records whose end was not met yet
        self._noted: set[int] = set()  # offsets of markers
        self.faults: list[str] = []

    def segment(self, entries: Iterable[AbortedTxn]) -> None:
        """The next segment begins, and these are in its index."""
        self._noted = {entry.last_offset for entry in entries}
        self.faults = []

    def batch(self, batch: Batch) -> None:
        header = batch.header
        if header.base_offset != self._next_offset:
            self._open.clear()
        self._next_offset = header.last_offset + 1
        if batch.faults or not header.is_transactional:
            return
        if not header.is_control:
            self._open.add(header.producer_id)
        elif header.producer_id in self._open:
            self._open.discard(header.producer_id)
            offset = header.base_offset
            if offset < self._promised_end_offset and offset not in self._noted and _is_abort(batch):
                self.faults.append(f"it has no entry for the transaction that was aborted at offset {offset}")


def _is_abort(batch: Batch) -> bool:
    try:
        marker = read_end_txn_marker(batch.data)
    except CorruptBatch:
        return False  # told where the batch is
    return marker is not None and marker.is_abort
