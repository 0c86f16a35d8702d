"""What the headers of a partition's batches tell, walked in order: missing offsets, producers, transactions. Pure.

Missing     An offset that no batch covers, or that a batch covers with fewer records than it has room for. A topic that
            is compacted has them for that reason, and nothing in a log tells that from loss. One that is not has none:
            markers and aborted records have their offsets, too.
Sequences   An idempotent producer numbers the records that it writes to a partition, from 0 in each epoch. A number
            that comes again is a record that was written twice; one that is left out was never written, or deleted.
Decided     Records of a transaction count as aborted when its marker says so. Those without a marker are open.
"""

from __future__ import annotations

import msgspec

from headpond.protocol.records.control import EndTxnMarker
from headpond.protocol.records.header import BatchHeader

EXAMPLES_MAX = 10
SEQUENCE_SPAN = 1 << 31
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Gap(msgspec.Struct, frozen=True, array_like=True):
    from_offset: int
    end_offset: int


class Duplicate(msgspec.Struct, frozen=True):
    producer_id: int
    epoch: int
    sequence: int
    offset: int
    """Of the second one."""
    records: int


class BatchFacts(msgspec.Struct):
    batches: int = 0
    size_bytes: int = 0
    records: int = 0
    """Data records in the log, aborted ones included."""
    missing_between: int = 0
    missing_inside: int = 0
    gaps: list[Gap] = []
    """The first of those between batches."""
    commit_markers: int = 0
    abort_markers: int = 0
    other_control: int = 0
    aborted_records: int = 0
    open_records: int = 0
    producers: int = 0
    duplicate_records: int = 0
    duplicates: list[Duplicate] = []
    sequence_gaps: int = 0
    old_epochs: int = 0
    """Batches of an epoch that a later one had ended."""
    codecs: dict[str, int] = {}

    @property
    def missing(self) -> int:
        return self.missing_between + self.missing_inside


class BatchWalk:
    def __init__(self, from_offset: int) -> None:
        self.facts = BatchFacts(gaps=[], duplicates=[], codecs={})
        self._next_offset = from_offset
        self._producers: dict[int, tuple[int, int]] = {}  # id -> (epoch, the next sequence)
        self._undecided: dict[int, int] = {}  # id -> records

    def take(self, header: BatchHeader, size_bytes: int, marker: EndTxnMarker | None) -> None:
        """``marker``: of a control batch that ends a transaction."""
        facts = self.facts
        facts.batches += 1
        facts.size_bytes += size_bytes
        self._cover(header)
        if header.is_control:
            self._end_transaction(header, marker)
            return
        facts.records += header.count
        codec = CODECS[header.codec] if header.codec < len(CODECS) else str(header.codec)
        facts.codecs[codec] = facts.codecs.get(codec, 0) + 1
        if header.is_transactional:
            self._undecided[header.producer_id] = self._undecided.get(header.producer_id, 0) + header.count
        if header.producer_id >= 0 and header.base_sequence >= 0:
            self._follow(header)

    def end(self, end_offset: int) -> BatchFacts:
        """``end_offset``: where the partition ended when it was looked at."""
        self._miss(end_offset)
        self.facts.open_records = sum(self._undecided.values())
        self.facts.producers = len(self._producers)
        return self.facts

    def _cover(self, header: BatchHeader) -> None:
        self._miss(header.base_offset)
        if not header.is_control:
            self.facts.missing_inside += max(0, header.last_offset_delta + 1 - header.count)
        self._next_offset = max(self._next_offset, header.last_offset + 1)

    def _miss(self, before_offset: int) -> None:
        if before_offset > self._next_offset:
            self.facts.missing_between += before_offset - self._next_offset
            if len(self.facts.gaps) < EXAMPLES_MAX:
                self.facts.gaps.append(Gap(self._next_offset, before_offset))
            self._next_offset = before_offset

    def _end_transaction(self, header: BatchHeader, marker: EndTxnMarker | None) -> None:
        if marker is None:
            self.facts.other_control += 1
            return
        records = self._undecided.pop(header.producer_id, 0)
        if marker.is_abort:
            self.facts.abort_markers += 1
            self.facts.aborted_records += records
        else:
            self.facts.commit_markers += 1

    def _follow(self, header: BatchHeader) -> None:
        facts = self.facts
        known = self._producers.get(header.producer_id)
        numbers = header.last_offset_delta + 1  # of a compacted batch, too: it keeps the numbers of what is gone
        following = (header.base_sequence + numbers) % SEQUENCE_SPAN
        if known is None or header.producer_epoch > known[0]:
            self._producers[header.producer_id] = (header.producer_epoch, following)
            return
        epoch, expected = known
        if header.producer_epoch < epoch:
            facts.old_epochs += 1
            return
        ahead = (header.base_sequence - expected) % SEQUENCE_SPAN
        if ahead > SEQUENCE_SPAN // 2:  # behind: these numbers have been there
            repeated = min(SEQUENCE_SPAN - ahead, numbers)
            facts.duplicate_records += min(repeated, header.count)
            if len(facts.duplicates) < EXAMPLES_MAX:
                facts.duplicates.append(
                    Duplicate(
                        header.producer_id, epoch, header.base_sequence, header.base_offset, min(repeated, header.count)
                    )
                )
            if repeated == numbers:
                return  # nothing new in it
        elif ahead:
            facts.sequence_gaps += 1
        self._producers[header.producer_id] = (epoch, following)
