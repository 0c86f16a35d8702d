"""Produce on the wire, by hand: the request's common shape without a message object, and its responses.

A producer repeats itself: client id, transactional id, acks, time-out and topic are the same bytes in request after
request. The connection remembers them as a ``ProducePrefix``; one ``startswith`` then replaces parsing them. Whatever
is not of that shape (several topics, unknown tags) goes through the compiled codec.

    key version correlation | client id .. acks timeout 1 topic | partitions: n x (index, size, records) | end
                            |<----------- the prefix ---------->|
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, NamedTuple

from headpond.broker.requests.turns import PARTITIONS_PER_SLICE
from headpond.model import ErrorCode
from headpond.protocol.apis import response_encoder
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.produce import ProduceResponse

if TYPE_CHECKING:
    from headpond.broker.replicas.replicas import Replica

FIRST_FLEXIBLE = 9
FIRST_WITH_TOPIC_ID = 13
BODY = 8  # key, version and correlation id stand before what repeats
ELEMENTS_BY_HAND = PARTITIONS_PER_SLICE
MANY = ELEMENTS_BY_HAND + 1

_i16 = Struct(">h").unpack_from
_i32 = Struct(">i").unpack_from
_index_and_size = Struct(">ii").unpack_from
_count_index_size = Struct(">iii").unpack_from
_NO_TAGS = bytes(3)  # of the partition, the topic and the request
_acks_and_timeout = Struct(">hi").unpack_from


class ProducePrefix:
    """What the repeated bytes mean. Good for one generation of the broker's topics."""

    __slots__ = (
        "acks",
        "flexible",
        "generation",
        "head_bytes",
        "may_use_transaction",
        "pack_answer",
        "quick",
        "raw",
        "replicas",
        "timeout_ms",
        "topic_raw",
        "transactional_id",
        "version",
    )

    def __init__(
        self,
        version: int,
        raw: bytes,
        acks: int,
        timeout_ms: int,
        topic_raw: bytes,
        transactional_id: str | None = None,
    ) -> None:
        self.version = version
        self.transactional_id = transactional_id
        self.may_use_transaction = False
        self.raw = raw
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_raw = topic_raw  # the topic as it stands on the wire, repeated in the response
        self.flexible = version >= FIRST_FLEXIBLE
        self.generation = -1
        self.replicas: dict[int, Replica] | ErrorCode = {}
        self.quick: dict[int, Replica] = {}  # those that need no preparation
        self.head_bytes = BODY + len(raw)
        # (correlation id, index, base offset, append time, log start offset) of one partition that went well
        self.pack_answer = _answer_packer(version, topic_raw)

    @property
    def topic(self) -> str:
        raw = self.topic_raw
        return raw[_uvarint(raw, 0)[1] :].decode() if self.flexible else raw[2:].decode()

    @property
    def topic_id(self) -> bytes:
        return self.topic_raw


def parse_prefix(buffer: bytearray, start: int, end: int, version: int) -> ProducePrefix | None:
    """The prefix of a request for one topic; None: let the codec read it."""
    try:
        position = start + BODY
        (client_bytes,) = _i16(buffer, position)
        position += 2 + max(client_bytes, 0)
        transactional_id = None
        if version >= FIRST_FLEXIBLE:
            if buffer[position] != 0:  # header tags
                return None
            length, position = _uvarint(buffer, position + 1)
            if length:
                transactional_id = buffer[position : position + length - 1].decode()
                position += length - 1
            acks, timeout_ms = _acks_and_timeout(buffer, position)
            position += 6
            if buffer[position] != 2:  # one topic
                return None
            topic_start = position + 1
            if version >= FIRST_WITH_TOPIC_ID:
                topic_end = topic_start + 16
            else:
                length, name_start = _uvarint(buffer, topic_start)
                topic_end = name_start + length - 1
        else:
            (length,) = _i16(buffer, position)
            position += 2
            if length >= 0:
                transactional_id = buffer[position : position + length].decode()
                position += length
            acks, timeout_ms = _acks_and_timeout(buffer, position)
            (topics,) = _i32(buffer, position + 6)
            if topics != 1:
                return None
            topic_start = position + 10
            topic_end = topic_start + 2 + _i16(buffer, topic_start)[0]
        if topic_end > end:
            return None
        raw = bytes(buffer[start + BODY : topic_end])
        prefix = ProducePrefix(version, raw, acks, timeout_ms, bytes(buffer[topic_start:topic_end]), transactional_id)
        if version < FIRST_WITH_TOPIC_ID:
            _ = prefix.topic  # a name that is no UTF-8 is the codec's to refuse
        return prefix
    except (IndexError, ValueError, StructError, MalformedMessage):
        return None


def parse_one_partition(
    prefix: ProducePrefix, buffer: bytearray, view: memoryview, start: int, end: int
) -> tuple[int, memoryview] | None:
    """(index, records) of a request for a single partition; None: it is not one, or not quite."""
    position = start + prefix.head_bytes
    if prefix.flexible:
        if end - position < 9 or buffer[position] != 2 or buffer[end - 3 : end] != _NO_TAGS:
            return None
        (index,) = _i32(buffer, position + 1)
        position += 5
        size = shift = 0
        while (byte := buffer[position]) >= 0x80 and shift < 28:
            size |= (byte & 0x7F) << shift
            shift += 7
            position += 1
        records_end = position + (size | byte << shift)
        if byte >= 0x80 or records_end != end - 3:
            return None
        return index, view[position + 1 : records_end]
    if end - position < 12:
        return None
    count, index, size = _count_index_size(buffer, position)
    position += 12
    if count != 1 or position + size != end:
        return None
    return index, view[position:end]


def count_elements(view: memoryview, start: int, end: int, version: int) -> int:
    """How many topics and partitions a request names. More than ``ELEMENTS_BY_HAND``: that many at least, or they
    can't be counted so simply (the codec finds out what is wrong with it)."""
    try:
        return _count(view[:end], start + BODY, version >= FIRST_FLEXIBLE, version >= FIRST_WITH_TOPIC_ID)
    except (IndexError, StructError, MalformedMessage):
        return MANY


def _count(buffer: memoryview, position: int, is_flexible: bool, has_ids: bool) -> int:
    def length(kind: Callable[..., tuple[int]], size: int, at: int) -> tuple[int, int]:
        if is_flexible:
            number, at = _uvarint(buffer, at)
            return max(0, number - 1), at
        return max(0, kind(buffer, at)[0]), at + size

    position += 2 + max(0, _i16(buffer, position)[0])  # the client id
    if is_flexible:
        if buffer[position]:  # tags in the header
            return MANY
        position += 1
    characters, position = length(_i16, 2, position)
    position += characters + 6  # transactional id, acks, time-out
    topics, position = length(_i32, 4, position)
    count = topics
    for _ in range(min(topics, MANY)):
        characters, position = (16, position) if has_ids else length(_i16, 2, position)
        partitions, position = length(_i32, 4, position + characters)
        count += partitions
        if count >= MANY:
            return MANY
        for _ in range(partitions):
            size, position = length(_i32, 4, position + 4)
            position += size
            if is_flexible:
                if buffer[position]:
                    return MANY
                position += 1
        if is_flexible:
            if buffer[position]:
                return MANY
            position += 1
    return min(count, MANY)


def parse_partitions(
    prefix: ProducePrefix, buffer: bytearray, view: memoryview, start: int, end: int
) -> list[tuple[int, memoryview]] | None:
    """What follows the prefix: (index, records) of each partition; None: not of the common shape after all."""
    position = start + BODY + len(prefix.raw)
    entries: list[tuple[int, memoryview]] = []
    try:
        if prefix.flexible:
            count, position = _uvarint(buffer, position)
            if count > MANY:  # one more than there are
                return None
            for _ in range(count - 1):
                (index,) = _i32(buffer, position)
                size, position = _uvarint(buffer, position + 4)
                records_end = position + size - 1
                if size == 0 or records_end >= end or buffer[records_end] != 0:  # null records; the partition's tags
                    return None
                entries.append((index, view[position:records_end]))
                position = records_end + 1
            if position + 2 != end or buffer[position] != 0 or buffer[position + 1] != 0:
                return None
        else:
            (count,) = _i32(buffer, position)
            if count > ELEMENTS_BY_HAND:
                return None
            position += 4
            for _ in range(count):
                index, size = _index_and_size(buffer, position)
                position += 8
                records_end = position + size
                if size < 0 or records_end > end:
                    return None
                entries.append((index, view[position:records_end]))
                position = records_end
            if position != end:
                return None
    except (IndexError, StructError, MalformedMessage):
        return None
    return entries if entries else None


def _uvarint(buffer: bytearray | bytes | memoryview, position: int) -> tuple[int, int]:
    value = buffer[position]
    position += 1
    if value < 0x80:
        return value, position
    value &= 0x7F
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise MalformedMessage("a varint is too long")


# --- responses


class Result(NamedTuple):
    """The outcome for one partition."""

    index: int  # type: ignore[assignment]  # the protocol's word
    code: int = 0
    base_offset: int = -1
    append_time_ms: int = -1
    log_start_offset: int = -1
    message: str | None = None
    record_errors: Sequence[tuple[int, str | None]] = ()


_plain_head = Struct(">iii").pack
_flexible_head = Struct(">iiBB").pack
_i32_pack = Struct(">i").pack
_plain_v3 = Struct(">ihqq").pack
_plain_v5 = Struct(">ihqqq").pack
_plain_v8 = Struct(">ihqqqih").pack
_flexible_v9 = Struct(">ihqqqBBB").pack
_FLEXIBLE_END = bytes(6)  # the topic's tags, throttle time, the response's tags


def _answer_packer(version: int, topic_raw: bytes) -> Callable[[int, int, int, int, int], bytes]:
    """Packs the whole frame at once; what does not change from answer to answer is bound already."""
    topic = f"{len(topic_raw)}s"
    if version >= FIRST_FLEXIBLE:
        layout = Struct(f">iiBB{topic}BihqqqB8x")  # ends with empty tags, no throttle time, no error
        size, pack = layout.size - 4, layout.pack
        return lambda correlation_id, index, base, time, start: pack(
            size, correlation_id, 0, 2, topic_raw, 2, index, 0, base, time, start, 1
        )
    layout = Struct(f">iii{topic}iihqq" + ("qihi" if version >= 8 else "qi" if version >= 5 else "i"))
    size, pack = layout.size - 4, layout.pack
    if version >= 8:
        return lambda correlation_id, index, base, time, start: pack(
            size, correlation_id, 1, topic_raw, 1, index, 0, base, time, start, 0, -1, 0
        )
    if version >= 5:
        return lambda correlation_id, index, base, time, start: pack(
            size, correlation_id, 1, topic_raw, 1, index, 0, base, time, start, 0
        )
    return lambda correlation_id, index, base, time, start: pack(
        size, correlation_id, 1, topic_raw, 1, index, 0, base, time, 0
    )


def one_topic_response(version: int, correlation_id: int, prefix: ProducePrefix, results: list[Result]) -> bytes:
    """The response to a request for one topic."""
    topic_raw = prefix.topic_raw
    if any(result.message is not None or result.record_errors for result in results) or len(results) > 126:
        by_id = version >= FIRST_WITH_TOPIC_ID
        topic = ("" if by_id else prefix.topic, prefix.topic_id if by_id else bytes(16), results)
        return response(version, correlation_id, [topic])
    if version >= FIRST_FLEXIBLE:
        rows = b"".join([_flexible_v9(r[0], r[1], r[2], r[3], r[4], 1, 0, 0) for r in results])
        size = 6 + len(topic_raw) + 1 + len(rows) + 6
        return b"".join(
            (_flexible_head(size, correlation_id, 0, 2), topic_raw, bytes((len(results) + 1,)), rows, _FLEXIBLE_END)
        )
    if version >= 8:
        rows = b"".join([_plain_v8(r[0], r[1], r[2], r[3], r[4], 0, -1) for r in results])
    elif version >= 5:
        rows = b"".join([_plain_v5(r[0], r[1], r[2], r[3], r[4]) for r in results])
    else:
        rows = b"".join([_plain_v3(r[0], r[1], r[2], r[3]) for r in results])
    size = 8 + len(topic_raw) + 4 + len(rows) + 4
    return b"".join((_plain_head(size, correlation_id, 1), topic_raw, _i32_pack(len(results)), rows, bytes(4)))


def response(version: int, correlation_id: int, topics: Iterable[tuple[str, bytes, list[Result]]]) -> bytes:
    """Any response, through the codec."""
    message = ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=topic if version < FIRST_WITH_TOPIC_ID else "",
                topic_id=topic_id if version >= FIRST_WITH_TOPIC_ID else bytes(16),
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(
                        index=r.index,
                        error_code=r.code,
                        base_offset=r.base_offset,
                        log_append_time_ms=r.append_time_ms,
                        log_start_offset=r.log_start_offset,
                        record_errors=[
                            ProduceResponse.BatchIndexAndErrorMessage(batch_index=i, batch_index_error_message=text)
                            for i, text in r.record_errors
                        ],
                        error_message=r.message,
                    )
                    for r in results
                ],
            )
            for topic, topic_id, results in topics
        ]
    )
    body = response_encoder(0, version)(message)
    if version >= FIRST_FLEXIBLE:
        return Struct(">iiB").pack(len(body) + 5, correlation_id, 0) + body
    return Struct(">ii").pack(len(body) + 4, correlation_id) + body
