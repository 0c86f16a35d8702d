"""Produce: v3-v13 (v0-v2 are advertised, as Kafka does for old librdkafka, and refused by closing the connection).

Behaviour   One batch per partition. A partition's failure never fails its neighbours. acks=0 gets no response, and an
            error closes the connection; acks=1 is answered after the write to the page cache; acks=all when the batch
            is below the high watermark, which with penstock.flush=ack is when it is on disk. A partition that must
            make room first (its first append, a roll, a repair after a full disk) holds the connection back *before*
            anything of the request is appended: sequences stay in order.
Versions    v3 RecordBatch v2 only · v5 log start offset · v7 zstd · v8 record errors (KIP-467) · v9 flexible ·
            v10 current leader (KIP-951) · v11/v12 transactions v2 (KIP-890) · v13 topic ids (KIP-516)
Not done    transactional batches: refused until there is a transaction coordinator.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from penstock.broker.api import Api
from penstock.broker.connection import Connection
from penstock.broker.handlers.produce_wire import (
    FIRST_WITH_TOPIC_ID,
    ProducePrefix,
    Result,
    one_topic_response,
    parse_partitions,
    parse_prefix,
    response,
)
from penstock.broker.parked import ParkedProduce, ParkedProduces
from penstock.broker.replicas import Replica, Replicas
from penstock.model import BrokerError, ErrorCode, StorageFailed, TopicId, invariant
from penstock.ports import Clock, Tasks, Workers
from penstock.protocol.apis import request_decoder
from penstock.protocol.header import decode_request_header
from penstock.protocol.records.header import TRANSACTIONAL_BIT, BatchHeader
from penstock.storage.admission import BatchRefused, admit, needs_deep_look

API = Api(key=0, versions=range(3, 14), name="Produce")

ALL = -1
ZSTD_SINCE = 7

Entry = tuple[int, memoryview]
"""A partition's index and its records field, which points into the receive buffer."""
Admitted = tuple[Replica, memoryview, BatchHeader]
Room = tuple[Replica, int, int]
"""(replica, size in bytes, max timestamp) of a batch that its log has no room for yet."""


class Prepared:
    """What a held-back request has learnt before it is served again."""

    __slots__ = ("looked_at", "out_of_room")

    def __init__(self) -> None:
        self.looked_at: dict[tuple[int, int], tuple[memoryview, BatchHeader] | BatchRefused] = {}
        self.out_of_room: dict[Replica, StorageFailed] = {}

    def keep_rewritten(self, outcomes: Sequence[Sequence[Result | Admitted]]) -> None:
        """Batches whose timestamps were set in place are admitted already, and must not be taken for the client's."""
        for topic_number, outcome in enumerate(outcomes):
            for number, one in enumerate(outcome):
                if not isinstance(one, Result) and one[2].is_append_time:
                    self.looked_at[topic_number, number] = (memoryview(bytearray(one[1])), one[2])


class NeedsLook(NamedTuple):
    """A batch whose records must be looked at (or compressed anew) first: a worker's job, not the loop's."""

    at: tuple[int, int]  # topic number, number of the partition in the topic
    replica: Replica
    records: bytes


class ProduceHandler:
    def __init__(
        self, replicas: Replicas, parked: ParkedProduces, clock: Clock, tasks: Tasks, workers: Workers
    ) -> None:
        self._replicas = replicas
        self._parked = parked
        self._clock = clock
        self._tasks = tasks
        self._workers = workers

    def receive(
        self,
        connection: Connection,
        buffer: bytearray,
        view: memoryview,
        start: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> None:
        prefix = connection.produce_prefix
        if prefix is None or prefix.version != version or not buffer.startswith(prefix.raw, start + 8, end):
            prefix = connection.produce_prefix = parse_prefix(buffer, start, end, version)
        entries = parse_partitions(prefix, buffer, view, start, end) if prefix is not None else None
        if prefix is None or entries is None:
            self._receive_any(connection, view, start, end, version, correlation_id)
            return
        if prefix.generation != self._replicas.generation:
            self._resolve(prefix)
        request = _OneTopic(version, correlation_id, prefix)
        self._append(connection, request, prefix.acks, prefix.timeout_ms, [(prefix.replicas, entries)])

    def _receive_any(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> None:
        _, position = decode_request_header(view[:end], start)
        message, _ = request_decoder(0, version)(view[:end], position)
        request = _AnyTopics(
            version,
            correlation_id,
            [(t.name, t.topic_id) for t in message.topic_data],
            has_transactional_id=message.transactional_id is not None,
        )
        topics = []
        for topic in message.topic_data:
            replicas = self._replicas_of(version, topic.name, topic.topic_id)
            topics.append((replicas, [(p.index, _view(p.records)) for p in topic.partition_data]))
        self._append(connection, request, message.acks, message.timeout_ms, topics)

    def _resolve(self, prefix: ProducePrefix) -> None:
        by_id = prefix.version >= FIRST_WITH_TOPIC_ID
        prefix.replicas = self._replicas_of(
            prefix.version, "" if by_id else prefix.topic, prefix.topic_id if by_id else b""
        )
        prefix.generation = self._replicas.generation

    def _replicas_of(self, version: int, name: str, topic_id: bytes) -> dict[int, Replica] | ErrorCode:
        if version < FIRST_WITH_TOPIC_ID:
            return self._replicas.of_topic(name)
        replicas = self._replicas.of_topic_id(TopicId(topic_id))
        return ErrorCode.UNKNOWN_TOPIC_ID if replicas is None else replicas

    # --- the same for every shape of request

    def _append(
        self,
        connection: Connection,
        request: _OneTopic | _AnyTopics,
        acks: int,
        timeout_ms: int,
        topics: Sequence[tuple[dict[int, Replica] | ErrorCode, Sequence[Entry]]],
    ) -> None:
        now_ms = self._clock.now_ms()
        prepared, connection.prepared_produce = connection.prepared_produce, None
        outcomes: list[list[Result | Admitted]] = []
        looks: list[NeedsLook] = []
        rooms: list[Room] = []
        is_transactional = False
        for topic_number, (replicas, entries) in enumerate(topics):
            outcome: list[Result | Admitted] = []
            for number, entry in enumerate(entries):
                one = self._admit(replicas, entry, acks, request.version, now_ms, prepared, (topic_number, number))
                if isinstance(one, NeedsLook):
                    looks.append(one)
                    outcome.append(Result(entry[0]))  # keeps the place: the request is served again anyway
                    continue
                outcome.append(one)
                if isinstance(one, Result):
                    is_transactional |= one.code == ErrorCode.INVALID_TXN_STATE
                else:
                    replica, batch, header = one
                    if not replica.partition.log.can_append(len(batch), header.max_timestamp, now_ms):
                        rooms.append((replica, len(batch), header.max_timestamp))
            outcomes.append(outcome)
        if is_transactional and not request.has_transactional_id:
            # Kafka refuses the whole request: a transactional batch without an id can't be authorised.
            refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            rows = [[Result(entry[0], refused) for entry in entries] for _, entries in topics]
            self._answer(connection, request, acks, timeout_ms, rows, [])
            return
        if looks or rooms:
            connection.serve_again_later()
            connection.hold()
            prepared = prepared or Prepared()
            prepared.keep_rewritten(outcomes)
            zstd_allowed = request.version >= ZSTD_SINCE
            work = self._prepare(connection, prepared, looks, rooms, now_ms, zstd_allowed=zstd_allowed)
            self._tasks.spawn("prepare a produce", work)
            return
        wait_for: list[tuple[Replica, int, int, int]] = []
        results: list[list[Result]] = []
        for topic_number, outcome in enumerate(outcomes):
            row: list[Result] = []
            for entry, admitted in zip(topics[topic_number][1], outcome, strict=True):
                if isinstance(admitted, Result):
                    row.append(admitted)
                    continue
                result, end_offset = self._append_one(entry[0], admitted, now_ms, is_urgent=acks == ALL)
                if end_offset > admitted[0].partition.high_watermark and acks == ALL:
                    wait_for.append((admitted[0], end_offset, topic_number, len(row)))
                row.append(result)
            results.append(row)
        self._answer(connection, request, acks, timeout_ms, results, wait_for)

    def _admit(
        self,
        replicas: dict[int, Replica] | ErrorCode,
        entry: Entry,
        acks: int,
        version: int,
        now_ms: int,
        prepared: Prepared | None,
        at: tuple[int, int],
    ) -> Result | Admitted | NeedsLook:
        index, records = entry
        if not -1 <= acks <= 1:
            return Result(index, ErrorCode.INVALID_REQUIRED_ACKS)
        if isinstance(replicas, ErrorCode):
            return Result(index, replicas)
        replica = replicas.get(index)
        if replica is None:
            return Result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        log = replica.partition.log
        looked_at = None
        if prepared is not None:
            if replica in prepared.out_of_room:
                return _failed(index, prepared.out_of_room[replica])
            looked_at = prepared.looked_at.get(at)
        try:
            if looked_at is None:
                if needs_deep_look(log.config):
                    return NeedsLook(at, replica, bytes(records))
                looked_at = admit(records, log.config, now_ms, log.tp, zstd_allowed=version >= ZSTD_SINCE)
            elif isinstance(looked_at, BatchRefused):
                raise looked_at
            batch, header = looked_at
        except BatchRefused as refused:
            return Result(
                index,
                refused.code,
                log_start_offset=log.log_start_offset,
                message=refused.message or None,
                record_errors=refused.record_errors,
            )
        if header.attributes & TRANSACTIONAL_BIT:
            return Result(index, ErrorCode.INVALID_TXN_STATE)
        return replica, batch, header

    def _append_one(self, index: int, admitted: Admitted, now_ms: int, *, is_urgent: bool) -> tuple[Result, int]:
        replica, batch, header = admitted
        partition = replica.partition
        log = partition.log
        try:
            if not log.can_append(len(batch), header.max_timestamp, now_ms):
                # Only a request that names a partition twice gets here: its first batch used up the room.
                raise StorageFailed(message="the request names a partition twice")
            appended = partition.append(
                batch, header, now_ms=now_ms, is_urgent=is_urgent or bool(replica.fetch_waiters)
            )
        except BrokerError as failed:
            return _failed(index, failed, log.log_start_offset), 0
        replica.appended_bytes += len(batch)
        base_offset, last_offset, append_time_ms = appended
        return Result(index, 0, base_offset, append_time_ms, log.log_start_offset), last_offset + 1

    def _answer(
        self,
        connection: Connection,
        request: _OneTopic | _AnyTopics,
        acks: int,
        timeout_ms: int,
        results: list[list[Result]],
        wait_for: list[tuple[Replica, int, int, int]],
    ) -> None:
        if acks == 0:
            if any(result.code for row in results for result in row):
                connection.close()
            return
        if not wait_for:
            connection.respond(request.response(results))
            return
        self._parked.park(
            ParkedProduce(connection.park(), request.response, results, wait_for, self._parked), timeout_ms
        )

    async def _prepare(
        self,
        connection: Connection,
        prepared: Prepared,
        looks: Sequence[NeedsLook],
        rooms: Sequence[Room],
        now_ms: int,
        *,
        zstd_allowed: bool,
    ) -> None:
        """Look into records, roll segments, repair logs; then let the request be served again from its start.

        The batches in the request lie in a receive buffer that is no longer ours: only copies and sizes came here."""
        try:
            for at, replica, records in looks:
                log = replica.partition.log
                try:
                    prepared.looked_at[at] = await self._workers.run(
                        partial(
                            admit, memoryview(bytearray(records)), log.config, now_ms, log.tp, zstd_allowed=zstd_allowed
                        )
                    )
                except BatchRefused as refused:
                    prepared.looked_at[at] = refused
            for replica, size_bytes, max_timestamp in rooms:
                try:
                    await replica.partition.log.make_room(size_bytes, max_timestamp, now_ms)
                except StorageFailed as failed:
                    prepared.out_of_room[replica] = failed
        finally:
            connection.prepared_produce = prepared
            connection.unhold()


class _OneTopic:
    __slots__ = ("_correlation_id", "_prefix", "version")
    has_transactional_id = False

    def __init__(self, version: int, correlation_id: int, prefix: ProducePrefix) -> None:
        self.version = version
        self._correlation_id = correlation_id
        self._prefix = prefix

    def response(self, results: list[list[Result]]) -> bytes:
        return one_topic_response(self.version, self._correlation_id, self._prefix, results[0])


class _AnyTopics:
    __slots__ = ("_correlation_id", "_topics", "has_transactional_id", "version")

    def __init__(
        self, version: int, correlation_id: int, topics: list[tuple[str, bytes]], *, has_transactional_id: bool
    ) -> None:
        self.has_transactional_id = has_transactional_id
        self.version = version
        self._correlation_id = correlation_id
        self._topics = topics

    def response(self, results: list[list[Result]]) -> bytes:
        rows = [(name, topic_id, row) for (name, topic_id), row in zip(self._topics, results, strict=True)]
        return response(self.version, self._correlation_id, rows)


def _failed(index: int, failed: BrokerError, log_start_offset: int = -1) -> Result:
    """Kafka sends texts about refused batches only; others are for the log."""
    return Result(index, failed.code, log_start_offset=log_start_offset)


def _view(records: bytes | memoryview | None) -> memoryview:
    """A records field as the codec gives it: null counts as empty, which no batch is."""
    invariant(not isinstance(records, bytes), "a decoded batch must be a view of the receive buffer")
    return memoryview(records if records is not None else b"")
