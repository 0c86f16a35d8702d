"""What a fetch brought of one partition: whole batches, checked, without those that a reader must not see. No I/O.

Control batches and, under read_committed, the batches of aborted transactions are left out; they still move the
position on. A batch that was cut off at the end of the answer is dropped: the next fetch brings it whole. Bytes that
are not what their checksum says raise ``CORRUPT_MESSAGE``.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable
from typing import NamedTuple

from headpond.client.errors import ClientError
from headpond.model import ErrorCode, TopicPartition
from headpond.ports import Buffer
from headpond.protocol.records.control import read_end_txn_marker
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import HEADER_BYTES, MAGIC, BatchHeader, crc_of, read_header
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Header
from headpond.protocol.schema.fetch import FetchResponse

MAGIC_POSITION = 16
_length = struct.Struct(">i")
_new = tuple.__new__


class RecordView(NamedTuple):
    tp: TopicPartition
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class FetchedBatch:
    """One batch as it stands in the log. ``records`` decodes it; ``data`` is for those who do that themselves."""

    __slots__ = ("data", "end_offset", "fetched", "from_offset", "header", "high_watermark", "position", "tp")

    def __init__(
        self,
        tp: TopicPartition,
        header: BatchHeader,
        data: memoryview,
        *,
        fetched: memoryview,
        position: int,
        from_offset: int,
        end_offset: int | None,
        high_watermark: int,
    ) -> None:
        self.tp = tp
        self.header = header
        self.data = data
        self.fetched = fetched
        """All that came with it, for those who decode many batches at once; ``data`` is a part of it."""
        self.position = position
        """Where in ``fetched`` it begins."""
        self.from_offset = from_offset
        """Records before it were not asked for, though they are in the batch."""
        self.end_offset = end_offset
        """Records from it on were not asked for; None: no end."""
        self.high_watermark = high_watermark
        """The partition's, when this was fetched: how far behind the reader is."""

    @property
    def next_offset(self) -> int:
        """Where reading goes on after this batch."""
        return self.header.last_offset + 1

    @property
    def records(self) -> list[RecordView]:
        """Decoded anew at each call; may be empty (compaction). Raises ``CORRUPT_MESSAGE``."""
        tp = self.tp
        try:
            views = [_new(RecordView, (tp, *record)) for record in read_records(self.data)]
        except CorruptBatch as error:
            raise corrupt(tp, self.header.base_offset, str(error)) from error
        first, end = self.from_offset, self.end_offset
        if self.header.base_offset < first or (end is not None and end < self.next_offset):
            views = [one for one in views if one.offset >= first and (end is None or one.offset < end)]
        return views


class Cut(NamedTuple):
    """The batches of one answer, and where the next fetch begins."""

    batches: list[FetchedBatch]
    next_offset: int


def cut_batches(
    tp: TopicPartition,
    answer: FetchResponse.PartitionData,
    *,
    from_offset: int,
    end_offset: int | None = None,
    is_read_committed: bool = False,
    is_raw: bool = False,
    check_crcs: bool = True,
) -> Cut:
    """The batches of one partition's part of an answer, those that must not be seen left out."""
    listed = answer.aborted_transactions or () if is_read_committed else ()
    return cut_records(
        tp,
        answer.records or b"",
        from_offset=from_offset,
        end_offset=end_offset,
        aborted=[(one.producer_id, one.first_offset) for one in listed],
        high_watermark=answer.high_watermark,
        is_raw=is_raw,
        check_crcs=check_crcs,
    )


def cut_records(
    tp: TopicPartition,
    records: Buffer,
    *,
    from_offset: int,
    end_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    high_watermark: int = -1,
    is_raw: bool = False,
    check_crcs: bool = True,
) -> Cut:
    """The same for who has taken the answer apart. ``aborted``: (producer id, first offset) of each transaction.
    ``is_raw``: control batches and empty ones are no longer left out."""
    view = memoryview(records)
    hidden = AbortedTransactions(aborted)
    batches: list[FetchedBatch] = []
    position, next_offset = 0, from_offset
    while len(view) - position >= HEADER_BYTES:
        size_bytes = _size_of(tp, view, position, next_offset)
        if position + size_bytes > len(view):
            break
        data = view[position : position + size_bytes]
        position += size_bytes
        header = read_header(data)
        if check_crcs and crc_of(data) != header.crc:
            raise corrupt(tp, header.base_offset, "its checksum is wrong")
        if header.last_offset < from_offset:
            continue  # a broker may begin with the batch before
        if end_offset is not None and header.base_offset >= end_offset:
            next_offset = end_offset
            break
        next_offset = header.last_offset + 1
        if hidden.hides(tp, header, data) or (not is_raw and (header.is_control or header.count == 0)):
            continue
        batches.append(
            FetchedBatch(
                tp,
                header,
                data,
                fetched=view,
                position=position - size_bytes,
                from_offset=from_offset,
                end_offset=end_offset,
                high_watermark=high_watermark,
            )
        )
    if len(view) > 0 and next_offset == from_offset and position == 0:
        raise ClientError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"{tp}: the batch at offset {from_offset} does not fit into one answer"
        )
    return Cut(batches, next_offset)


def _size_of(tp: TopicPartition, view: memoryview, position: int, at_offset: int) -> int:
    if view[position + MAGIC_POSITION] != MAGIC:
        what = f"{tp}: records at offset {at_offset} are in a format from before Kafka 0.11"
        raise ClientError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, what)
    (length,) = _length.unpack_from(view, position + 8)
    if length < HEADER_BYTES - 12:
        raise corrupt(tp, at_offset, f"it claims a length of {length} bytes")
    return int(length) + 12


def corrupt(tp: TopicPartition, offset: int, why: str) -> ClientError:
    return ClientError(ErrorCode.CORRUPT_MESSAGE, f"{tp}: the batch at offset {offset} is damaged: {why}")


class AbortedTransactions:
    """Walks along the log beside the list that came with an answer: producer p's transaction from offset o on failed.

    A producer's batches are hidden from its transaction's first offset up to its ABORT marker.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._to_come = [(first_offset, producer_id) for producer_id, first_offset in aborted]
        heapq.heapify(self._to_come)
        self._open: set[int] = set()

    def hides(self, tp: TopicPartition, header: BatchHeader, data: memoryview) -> bool:
        """Whether a batch is part of an aborted transaction; to be asked for each batch in order."""
        if not self._to_come and not self._open:
            return False
        while self._to_come and self._to_come[0][0] <= header.last_offset:
            self._open.add(heapq.heappop(self._to_come)[1])
        if not header.is_transactional or header.producer_id not in self._open:
            return False
        if not header.is_control:
            return True
        try:
            marker = read_end_txn_marker(data)
        except CorruptBatch as error:
            raise corrupt(tp, header.base_offset, str(error)) from error
        if marker is not None and marker.is_abort:
            self._open.discard(header.producer_id)
        return False
