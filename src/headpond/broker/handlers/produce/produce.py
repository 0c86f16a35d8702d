"""Produce: v3-v13 (v0-v2 are advertised, as Kafka does for old librdkafka, and refused by closing the connection).

Behaviour   One batch per partition. A partition's failure never fails its neighbours. acks=0 gets no response, and an
            error closes the connection; acks=1 is answered after the write to the page cache; acks=all when the batch
            is below the high watermark, which with headpond.flush=ack is when it is on disk.
            A partition that must make room first (its first append, a roll, a repair after a full disk) holds the
            connection back *before* anything of the request is appended: sequences stay in order. So does the first
            batch of a transaction, until its coordinator has answered (``transactional.py``).
Versions    v3 RecordBatch v2 only · v5 log start offset · v7 zstd · v8 record errors (KIP-467) · v9 flexible ·
            v10 current leader (KIP-951) · v11/v12 transactions v2 (KIP-890) · v13 topic ids (KIP-516)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from headpond.broker.handlers.produce.held import NeedsLook, Place, Prepared, Room
from headpond.broker.handlers.produce.kept import (
    ZSTD_SINCE,
    AnyTopics,
    Entry,
    OneTopic,
    Request,
    Topic,
    decode,
    entries_of,
)
from headpond.broker.handlers.produce.parts import ProduceParts
from headpond.broker.handlers.produce.refusals import failed_result, refused_result
from headpond.broker.handlers.produce.topics import ProduceTopics
from headpond.broker.handlers.produce.transactional import (
    Admitted,
    Ask,
    Refusal,
    is_in_transaction,
    is_transactional,
    producers_of,
)
from headpond.broker.handlers.produce.waiting import Wait, WaitingAnswer, WaitingAnswers
from headpond.broker.handlers.produce.wide import Served, WideProduces
from headpond.broker.handlers.produce.wire import (
    BODY,
    ELEMENTS_BY_HAND,
    ProducePrefix,
    Result,
    count_elements,
    parse_one_partition,
    parse_partitions,
    parse_prefix,
)
from headpond.broker.net.connection import Connection
from headpond.broker.net.timing import note, serve_timed
from headpond.broker.replicas.replicas import Replica
from headpond.broker.requests.turns import LARGE_REQUEST_BYTES
from headpond.coordination.home import Producer
from headpond.model import BrokerError, ErrorCode, StorageFailed
from headpond.protocol.records.header import TRANSACTIONAL_BIT, BatchHeader
from headpond.storage.admission.admission import BatchRefused, LookNeeded, admit, plain_header
from headpond.storage.log.log import PartitionLog

ALL = -1
LONG_WAY = b""  # no answer is empty


class ProduceHandler:
    def __init__(self, parts: ProduceParts) -> None:
        self._meter = parts.meter
        self.transactions = parts.transactions
        self._replicas = parts.replicas
        self.topics = ProduceTopics(parts.replicas, parts.authorizer)
        self._waiting = parts.waiting
        self._clock = parts.clock
        self._tasks = parts.tasks
        self._looks = parts.looks
        self._turns = parts.turns
        self._wide = WideProduces(self, parts)

    def receive(
        self,
        connection: Connection,
        buffer: bytearray,
        view: memoryview,
        start: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> bytes | None:
        meter = self._meter
        left = meter.left - 1
        meter.left = left
        if not left:
            frame = (buffer, view, start, end, version, correlation_id)
            return serve_timed(self.receive, meter, self._clock, connection, *frame)
        prefix = connection.produce_prefix
        if (
            prefix is None
            or prefix.version != version
            or prefix.generation != self._replicas.generation
            or not buffer.startswith(prefix.raw, start + BODY, end)
        ):
            prefix = connection.produce_prefix = parse_prefix(buffer, start, end, version)
            if prefix is None:
                return self._receive_any(connection, view, start, end, version, correlation_id)
            self.topics.resolve(connection, prefix)
        one = parse_one_partition(prefix, buffer, view, start, end)
        if one is not None:
            replica = prefix.quick.get(one[0]) or self.topics.quick(prefix, one[0])
            if replica is not None and connection.prepared_produce is None:
                answer = self._append_quickly(connection, prefix, correlation_id, replica, one)
                if answer is not LONG_WAY:
                    return answer
        entries = parse_partitions(prefix, buffer, view, start, end)
        if entries is None:
            return self._receive_any(connection, view, start, end, version, correlation_id)
        request = OneTopic(version, correlation_id, prefix)
        return self._append(connection, request, prefix.acks, prefix.timeout_ms, [(prefix.replicas, entries)])

    def _append_quickly(
        self, connection: Connection, prefix: ProducePrefix, correlation_id: int, replica: Replica, entry: Entry
    ) -> bytes | None:
        """The common case in a straight line: one partition, nothing to prepare, nothing wrong. LONG_WAY: nothing has
        been done, take the long way, which also finds out what is wrong."""
        index, records = entry
        acks = prefix.acks
        partition = replica.partition
        log = partition.log
        now_ms = self._clock.now_ms()
        header = plain_header(records, log.config, now_ms, prefix.version >= ZSTD_SINCE)
        if (
            header is None
            or (header.attributes & TRANSACTIONAL_BIT and not _is_going_on(prefix, header, log))
            or not log.can_append(len(records), header.max_timestamp, now_ms)
        ):
            return LONG_WAY
        try:
            base_offset, last_offset, append_time_ms = partition.append(
                records, header, now_ms, acks == ALL or replica.is_awaited
            )
        except BrokerError as failed:
            # It can't be tried again: what was written, if anything, is the log's to know.
            result = failed_result(index, failed, log.log_start_offset)
            return self._answer(connection, OneTopic(prefix.version, correlation_id, prefix), acks, 0, [[result]], [])
        replica.appended_bytes += len(records)
        if acks == 0:
            return None
        answer = prefix.pack_answer(correlation_id, index, base_offset, append_time_ms, log.log_start_offset)
        if acks == 1 or last_offset < partition.high_watermark:
            return answer
        waiting = WaitingAnswer(connection, answer, prefix, correlation_id, index, self._waiting)
        connection.park_in(waiting)
        partition.when_committed(last_offset + 1, waiting, prefix.timeout_ms)
        return None

    def _receive_any(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> bytes | None:
        if end - start > LARGE_REQUEST_BYTES and count_elements(view, start, end, version) > ELEMENTS_BY_HAND:
            self._receive_wide(connection, view, start, end, version, correlation_id)
            return None
        message, client_id = decode(view[:end], start, version)
        named = [(t.name, t.topic_id) for t in message.topic_data]
        request = AnyTopics(version, correlation_id, named, transactional_id=message.transactional_id)
        topics: list[Topic] = []
        for topic in message.topic_data:
            replicas = self.topics.find(connection, version, topic.name, topic.topic_id, client_id)
            topics.append((replicas, entries_of(topic)))
        return self._append(connection, request, message.acks, message.timeout_ms, topics)

    def _receive_wide(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> None:
        prepared = connection.prepared_produce
        if isinstance(prepared, Served):  # it has taken effect, and is answered through its slot
            connection.prepared_produce = None
            note(self._meter, self._clock, connection, prepared.newest_before, prepared.since_s)
            self._meter.timed_apart()
            return
        self._meter.uncount()
        if self._turns.is_turn_of(connection):
            connection.serve_again_later()  # its batches stay where they are until they are appended
            self._turns.take(connection, self._wide.serve(connection, view[:end], start, version, correlation_id))
        else:
            self._turns.wait(connection, "a wide produce")

    # --- the same for every shape of request

    def _append(
        self,
        connection: Connection,
        request: Request,
        acks: int,
        timeout_ms: int,
        topics: Sequence[Topic],
    ) -> bytes | None:
        now_ms = self._clock.now_ms()
        prepared, connection.prepared_produce = connection.prepared_produce, None
        outcomes, looks, rooms, has_transactional = self.admit(topics, acks, request.version, now_ms, prepared)
        asks: list[Ask] = []
        if has_transactional:
            refused = self.refuse_transaction(connection, request.transactional_id, producers_of(outcomes))
            if refused is not None:  # as a whole
                rows = [[Result(entry[0], refused) for entry in entries] for _, entries in topics]
                return self._answer(connection, request, acks, timeout_ms, rows, [])
            asks = self.transactions.asks(outcomes, request.version, prepared.words if prepared is not None else {})
        if looks or rooms or asks:
            prepared = prepared or Prepared(self._clock.monotonic())
            prepared.keep_rewritten(outcomes)
            self._hold_back(connection, prepared, request, looks, rooms, asks, now_ms)
            return None
        if prepared is None:
            results, waits = self.append(topics, outcomes, request.version, acks, now_ms, None)
            return self._answer(connection, request, acks, timeout_ms, results, waits)
        newest = connection.newest_slot
        results, waits = self.append(topics, outcomes, request.version, acks, now_ms, prepared)
        answer = self._answer(connection, request, acks, timeout_ms, results, waits)
        note(self._meter, self._clock, connection, newest, prepared.since_s)
        self._meter.timed_apart()
        return answer

    def admit(
        self, topics: Sequence[Topic], acks: int, version: int, now_ms: int, prepared: Prepared | None, first: int = 0
    ) -> tuple[list[list[Result | Admitted]], list[NeedsLook], list[Room], bool]:
        """What is to be appended, by topic; what must be looked at or made room for before; and whether there is
        anything transactional. ``first``: the number of the first topic in the request."""
        outcomes: list[list[Result | Admitted]] = []
        looks: list[NeedsLook] = []
        rooms: list[Room] = []
        has_transactional = False
        for topic_number, (replicas, entries) in enumerate(topics, first):
            outcome: list[Result | Admitted] = []
            for number, entry in enumerate(entries):
                has_transactional |= is_transactional(entry[1])
                one = self._admit(replicas, entry, acks, version, now_ms, prepared, (topic_number, number))
                if isinstance(one, NeedsLook):
                    looks.append(one)
                    outcome.append(Result(entry[0]))  # keeps the place: the request is served again anyway
                    continue
                outcome.append(one)
                if not isinstance(one, Result):
                    replica, batch, header = one
                    if not replica.partition.log.can_append(len(batch), header.max_timestamp, now_ms):
                        rooms.append((replica, len(batch), header.max_timestamp))
            outcomes.append(outcome)
        return outcomes, looks, rooms, has_transactional

    def _admit(
        self,
        replicas: dict[int, Replica] | ErrorCode,
        entry: Entry,
        acks: int,
        version: int,
        now_ms: int,
        prepared: Prepared | None,
        at: Place,
    ) -> Result | Admitted | NeedsLook:
        index, records = entry
        if isinstance(replicas, ErrorCode):
            return Result(index, replicas)
        replica = replicas.get(index)
        if replica is None:
            return Result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not -1 <= acks <= 1:
            return Result(index, ErrorCode.INVALID_REQUIRED_ACKS)
        log = replica.partition.log
        looked_at = None
        if prepared is not None:
            if replica in prepared.out_of_room:
                return failed_result(index, prepared.out_of_room[replica])
            looked_at = prepared.looked_at.get(at)
        try:
            if looked_at is None:
                zstd_allowed = version >= ZSTD_SINCE
                looked_at = admit(records, log.config, now_ms, log.tp, zstd_allowed=zstd_allowed, inside_bytes_max=0)
            elif isinstance(looked_at, BatchRefused):
                raise looked_at
            batch, header = looked_at
        except LookNeeded:
            return NeedsLook(at, replica, bytes(records))
        except BatchRefused as refused:
            return refused_result(index, refused, records, log.log_start_offset, codec_first=version < ZSTD_SINCE)
        return replica, batch, header

    def refuse_transaction(
        self, connection: Connection, transactional_id: str | None, producers: Collection[Producer]
    ) -> ErrorCode | None:
        """Kafka refuses the whole request: a transactional batch without an id can't be authorised."""
        if transactional_id is None or not self.topics.allows(connection, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING if len(producers) > 1 else None

    def _hold_back(
        self,
        connection: Connection,
        prepared: Prepared,
        request: Request,
        looks: Sequence[NeedsLook],
        rooms: Sequence[Room],
        asks: Sequence[Ask],
        now_ms: int,
    ) -> None:
        zstd_allowed = request.version >= ZSTD_SINCE
        ask = None
        if asks:
            ask = partial(self.transactions.ask, request.transactional_id or "", request.version, asks)
        connection.serve_again_later()
        self._meter.uncount()
        connection.hold()

        async def prepare() -> None:
            try:
                look = self._looks.begin(connection)
                await prepared.prepare(looks, rooms, look, now_ms, zstd_allowed=zstd_allowed, ask=ask)
            except BaseException:
                connection.abort()  # else the request would be tried again for ever
                raise
            connection.prepared_produce = prepared
            connection.unhold()

        self._tasks.spawn("prepare a produce", prepare())

    def append(
        self,
        topics: Sequence[Topic],
        outcomes: Sequence[Sequence[Result | Admitted]],
        version: int,
        acks: int,
        now_ms: int,
        prepared: Prepared | None,
        first: int = 0,
    ) -> tuple[list[list[Result]], list[Wait]]:
        """The results by topic, and what has to be committed before they are told."""
        wait_for: list[Wait] = []
        results: list[list[Result]] = []
        for topic_number, ((_, entries), outcome) in enumerate(zip(topics, outcomes, strict=True), first):
            row: list[Result] = []
            for entry, admitted in zip(entries, outcome, strict=True):
                if isinstance(admitted, Result):
                    row.append(admitted)
                    continue
                if is_in_transaction(admitted[2]):
                    unverified = self._unverified(entry[0], admitted, version, prepared)
                    if unverified is not None:
                        row.append(unverified)
                        continue
                result, end_offset = self._append_one(entry[0], admitted, now_ms, is_urgent=acks == ALL)
                if acks == ALL and end_offset > admitted[0].partition.high_watermark:
                    wait_for.append(Wait(admitted[0].partition, end_offset, topic_number, len(row)))
                row.append(result)
            results.append(row)
        return results, wait_for

    def _unverified(self, index: int, admitted: Admitted, version: int, prepared: Prepared | None) -> Result | None:
        """Why a transactional batch may not be appended, if so; to be asked right before that."""
        replica, _, header = admitted
        word = prepared.words.get(replica) if prepared is not None else None
        if isinstance(word, Refusal):
            return word.result(index)
        log = replica.partition.log
        if not self.transactions.checks(version) or log.producers.is_verified(header, word):
            return None
        return Result(index, ErrorCode.INVALID_TXN_STATE, log_start_offset=log.log_start_offset)

    def _append_one(self, index: int, admitted: Admitted, now_ms: int, *, is_urgent: bool) -> tuple[Result, int]:
        replica, batch, header = admitted
        partition = replica.partition
        log = partition.log
        try:
            if not log.can_append(len(batch), header.max_timestamp, now_ms):
                # Only a request that names a partition twice gets here: its first batch used up the room.
                raise StorageFailed(message="the request names a partition twice")
            appended = partition.append(batch, header, now_ms, is_urgent=is_urgent or replica.is_awaited)
        except BrokerError as failed:
            return failed_result(index, failed, log.log_start_offset), 0
        replica.appended_bytes += len(batch)
        base_offset, last_offset, append_time_ms = appended
        return Result(index, 0, base_offset, append_time_ms, log.log_start_offset), last_offset + 1

    def _answer(
        self,
        connection: Connection,
        request: Request,
        acks: int,
        timeout_ms: int,
        results: list[list[Result]],
        wait_for: list[Wait],
    ) -> bytes | None:
        failures = [result.code for row in results for result in row if result.code]
        for code in failures:
            self._meter.failed(code)
        if acks == 0:
            if failures:
                connection.close()
            return None
        if not wait_for:
            return request.response(results)
        answers = WaitingAnswers(connection.park(), request.response, results, self._waiting)
        answers.wait_for(wait_for)
        answers.has_all(timeout_ms)
        return None


def _is_going_on(prefix: ProducePrefix, header: BatchHeader, log: PartitionLog) -> bool:
    """Whether a transactional batch is not the first one here of its transaction: its coordinator was asked before."""
    return prefix.may_use_transaction and log.producers.is_open(header.producer_id, header.producer_epoch)
