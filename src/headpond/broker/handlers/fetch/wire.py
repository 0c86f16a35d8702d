"""Fetch responses on the wire, by hand: the records are handed to the socket as they were read or lent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from headpond.broker.handlers.fetch.session import FetchPartition
from headpond.model import ErrorCode
from headpond.ports import Part

FIRST_FLEXIBLE = 12
FIRST_WITH_TOPIC_ID = 13
FIRST_WITH_LEADER_HINTS = 16


class Endpoint(NamedTuple):
    """Where a partition's leader is (KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None


class PartitionData:
    """What a fetch answers for one partition."""

    __slots__ = (
        "aborted",
        "current_leader",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "records",
        "wanted",
    )

    def __init__(self, wanted: FetchPartition, error_code: int = 0) -> None:
        self.wanted = wanted
        self.error_code = error_code
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.records: Part = b""
        self.aborted: Sequence[tuple[int, int]] | None = None  # (producer id, first offset); None: not asked for
        self.diverging_epoch: tuple[int, int] | None = None  # (epoch, end offset)
        self.current_leader: tuple[int, int] | None = None  # (leader id, leader epoch)

    @property
    def has_news(self) -> bool:
        return bool(self.error_code or self.records or self.diverging_epoch is not None)


_size_and_id = Struct(">ii").pack
_i16 = Struct(">h").pack
_i32 = Struct(">i").pack
_head_v7 = Struct(">ihi").pack  # throttle time, error, session
_row_v4 = Struct(">ihqq").pack
_row_v5 = Struct(">ihqqq").pack
_row_v12 = Struct(">ihqqqBi").pack  # with the number of aborted transactions, if it has none, and no preferred replica
_aborted = Struct(">qq").pack


def encode(
    version: int,
    correlation_id: int,
    partitions: Sequence[PartitionData],
    *,
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> list[Part]:
    """A whole response frame, part by part; neighbours of the same topic share one topic entry."""
    topics: list[list[PartitionData]] = []
    for data in partitions:
        if topics and topics[-1][0].wanted.key[0] == data.wanted.key[0]:
            topics[-1].append(data)
        else:
            topics.append([data])
    writer = _Flexible(version) if version >= FIRST_FLEXIBLE else _Plain(version)
    head = writer.head
    if version >= 7:
        head += _head_v7(0, error_code, session_id)
    else:
        head += bytes(4)
    writer.topics(topics)
    if version >= FIRST_FLEXIBLE:
        writer.end(endpoints if version >= FIRST_WITH_LEADER_HINTS else ())
    parts = writer.finish()
    flexible_header = b"\0" if version >= FIRST_FLEXIBLE else b""
    size_bytes = 4 + len(flexible_header) + sum(map(len, parts))
    parts.insert(0, _size_and_id(size_bytes, correlation_id) + flexible_header)
    return parts


def failed_response(version: int, correlation_id: int, session_id: int, asked: Iterable[FetchPartition]) -> list[Part]:
    """The whole request failed, in Kafka's form: before v13 with an error for each partition too."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    partitions = []
    if version < FIRST_WITH_TOPIC_ID:
        for wanted in asked:
            data = PartitionData(wanted, code)
            data.aborted = ()
            partitions.append(data)
    return encode(version, correlation_id, partitions, error_code=code, session_id=session_id)


class _Writer:
    def __init__(self, version: int) -> None:
        self.version = version
        self.head = bytearray()
        self._parts: list[Part] = []

    def finish(self) -> list[Part]:
        if self.head:
            self._parts.append(self.head)
        return self._parts

    def _records(self, records: Part) -> None:
        self._parts += (self.head, records)
        self.head = bytearray()


class _Plain(_Writer):
    """v4-v11"""

    def topics(self, topics: Sequence[Sequence[PartitionData]]) -> None:
        self.head += _i32(len(topics))
        for rows in topics:
            name = str(rows[0].wanted.key[0]).encode()
            self.head += _i16(len(name)) + name + _i32(len(rows))
            for row in rows:
                self._partition(row)

    def end(self, endpoints: Sequence[Endpoint]) -> None:
        pass

    def _partition(self, row: PartitionData) -> None:
        index = row.wanted.key[1]
        if self.version >= 5:
            self.head += _row_v5(
                index, row.error_code, row.high_watermark, row.last_stable_offset, row.log_start_offset
            )
        else:
            self.head += _row_v4(index, row.error_code, row.high_watermark, row.last_stable_offset)
        aborted = row.aborted
        self.head += _i32(-1 if aborted is None else len(aborted))
        for producer_id, first_offset in aborted or ():
            self.head += _aborted(producer_id, first_offset)
        if self.version >= 11:
            self.head += _i32(-1)  # preferred read replica
        self.head += _i32(len(row.records))
        if row.records:
            self._records(row.records)


class _Flexible(_Writer):
    """v12-v18"""

    def topics(self, topics: Sequence[Sequence[PartitionData]]) -> None:
        self.head += _uvarint(len(topics) + 1)
        for rows in topics:
            topic = rows[0].wanted.key[0]
            self.head += topic if isinstance(topic, bytes) else _compact(topic)
            self.head += _uvarint(len(rows) + 1)
            for row in rows:
                self._partition(row)
            self.head.append(0)

    def end(self, endpoints: Sequence[Endpoint]) -> None:
        if not endpoints:
            self.head.append(0)
            return
        field = bytearray(_uvarint(len(endpoints) + 1))
        for node_id, host, port, rack in endpoints:
            field += _i32(node_id) + _compact(host) + _i32(port) + (b"\0" if rack is None else _compact(rack)) + b"\0"
        self.head += b"\1\0" + _uvarint(len(field)) + field

    def _partition(self, row: PartitionData) -> None:
        head = self.head
        index, offsets = row.wanted.key[1], (row.high_watermark, row.last_stable_offset, row.log_start_offset)
        aborted = row.aborted
        if aborted:
            head += _row_v5(index, row.error_code, *offsets)
            head += _uvarint(len(aborted) + 1)
            for producer_id, first_offset in aborted:
                head += _aborted(producer_id, first_offset) + b"\0"
            head += _i32(-1)
        else:
            head += _row_v12(index, row.error_code, *offsets, 0 if aborted is None else 1, -1)
        records = row.records
        head += _uvarint(len(records) + 1)
        if records:
            self._records(records)
        if row.diverging_epoch is None and row.current_leader is None:
            self.head.append(0)
        else:
            self._tags(row)

    def _tags(self, row: PartitionData) -> None:
        tags = []
        if row.diverging_epoch is not None:
            tags.append(b"\0\x0d" + Struct(">iqB").pack(*row.diverging_epoch, 0))
        if row.current_leader is not None:
            tags.append(b"\1\x09" + Struct(">iiB").pack(*row.current_leader, 0))
        self.head.append(len(tags))
        self.head += b"".join(tags)


def _compact(text: str) -> bytes:
    raw = text.encode()
    return _uvarint(len(raw) + 1) + raw


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
