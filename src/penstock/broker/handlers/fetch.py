"""Fetch: v4-v18.

Behaviour   Reads whole batches below the high watermark (read_committed: below the last stable offset), at least one
            batch even if it is larger than every limit. Answered at once when min_bytes are there, a partition has an
            error, a log has diverged, or max_wait is 0; otherwise parked until an append (a flush, with
            penstock.flush=ack) brings enough, or the wait is over. Data that is not in memory is read by a worker;
            nobody else waits for it.
Versions    v5 log start offset · v7 sessions (KIP-227) · v9 current leader epoch (KIP-320) · v11 rack (KIP-392) · v12
            flexible, last fetched epoch and diverging epoch (KIP-595) · v13 topic ids (KIP-516) · v15 replica state
            (KIP-903) · v16 leader hints (KIP-951) · v17 directory ids (KIP-853) · v18 high watermark of followers
Not done    fetches of followers (replica ids): refused until there are replicas.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.broker.api import Api
from penstock.broker.connection import Connection
from penstock.broker.fetch_sessions import FetchPartition, Key
from penstock.broker.handlers.fetch_answer import answer
from penstock.broker.handlers.fetch_open import Fetch, FetchOpener, asked_partitions
from penstock.broker.handlers.fetch_wire import (
    FIRST_WITH_LEADER_HINTS,
    FIRST_WITH_TOPIC_ID,
    PartitionData,
    encode,
)
from penstock.broker.parked_fetch import ParkedFetch
from penstock.broker.replicas import FETCH_WAITERS_MAX, Replica, Replicas
from penstock.broker.security.authorizer import Authorizer, Operation, ResourceType
from penstock.broker.server import Server
from penstock.broker.slots import Slot
from penstock.broker.timing import serve_timed
from penstock.model import (
    BrokerError,
    ErrorCode,
    NotLeader,
    OffsetOutOfRange,
    TopicId,
    TopicPartition,
)
from penstock.ports import Clock, Part, Tasks
from penstock.protocol.apis import request_decoder
from penstock.protocol.errors import MalformedMessage
from penstock.protocol.header import decode_request_header
from penstock.protocol.schema.fetch import FetchRequest
from penstock.replication.partition import Partition
from penstock.storage.epochs import NO_END_OFFSET, NO_EPOCH, LeaderEpochs
from penstock.storage.txn_index import overlapping
from penstock.telemetry.requests import RequestMeter

API = Api(key=1, versions=range(4, 19), name="Fetch")

CONSUMER = -1
DEBUGGING_CONSUMER = -2  # may read up to the log's end
# Decoded, a request takes many times its size; a real one of this size would name 300,000 partitions.
REQUEST_BYTES_MAX = 8_388_608
NOT_FOUND = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
# A flush takes a few ms; one that takes longer than this is not waited for.
FLUSH_WAIT_MS = 1_000


class FetchHandler:
    def __init__(
        self,
        *,
        opener: FetchOpener,
        replicas: Replicas,
        authorizer: Authorizer,
        server: Server,
        clock: Clock,
        tasks: Tasks,
        meter: RequestMeter,
    ) -> None:
        self._meter = meter
        self._opener = opener
        self._replicas = replicas
        self._authorizer = authorizer
        self._server = server
        self._clock = clock
        self._tasks = tasks
        self.parked_count = 0

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
        meter = self._meter
        meter.left -= 1
        if not meter.left:
            frame = (buffer, view, start, end, version, correlation_id)
            serve_timed(self.receive, meter, self._clock, connection, *frame)
            return
        if end - start > REQUEST_BYTES_MAX:
            raise MalformedMessage(f"a fetch request of {end - start} bytes")
        body = view[:end]
        _, position = decode_request_header(body, start)
        request, _ = request_decoder(1, version)(body, position)
        if not 0 <= request.isolation_level <= 1:
            meter.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            connection.respond(*_failed_response(request, version, correlation_id))
            return
        fetch = self._opener.open(connection, request, version, correlation_id)
        if isinstance(fetch, ErrorCode):
            meter.failed(fetch)
            connection.respond(*encode(version, correlation_id, (), error_code=fetch))
            return
        results, size_bytes, cold = self._read(fetch)
        if cold:
            self._tasks.spawn("read cold data", self._read_cold(fetch, connection.park(), results, cold))
        elif self.parked_count >= FETCH_WAITERS_MAX:
            answer(fetch, results, None)
        elif not self._is_enough(fetch, results, size_bytes):
            self._park(fetch, connection.park(), size_bytes, fetch.max_wait_ms)
        elif size_bytes == 0 and self._awaits_flush(fetch, results):
            # What was acknowledged before this request must be found by it, as it would be in Kafka.
            self._park(fetch, connection.park(), size_bytes, max(fetch.max_wait_ms, FLUSH_WAIT_MS))
        else:
            answer(fetch, results, None)

    # --- reading

    def _read(self, fetch: Fetch) -> tuple[list[PartitionData], int, list[int]]:
        """Results in order (what does not exist comes last, as in Kafka), their bytes, and the numbers of those whose
        data is not in memory."""
        bytes_left = 1 if self._server.responses_are_piling_up else fetch.bytes_max
        size_bytes = 0
        results: list[PartitionData] = []
        missing: list[PartitionData] = []
        cold: list[int] = []
        topic: str | bytes | None = None
        replicas: dict[int, Replica] = {}
        for wanted in fetch.wanted:
            data = PartitionData(wanted)
            try:
                if wanted.key[0] != topic:
                    replicas = self._replicas_of(fetch, wanted)
                    topic = wanted.key[0]
                replica = _replica_in(replicas, wanted)
            except BrokerError as failed:
                self._fail(fetch, data, failed, None)
                missing.append(data)
                continue
            results.append(data)
            bytes_max = min(wanted.max_bytes, bytes_left)
            bytes_left = max(0, bytes_left)  # a negative limit is the first partition's; the others have none left
            try:
                limit = self._prepare(fetch, data, replica)
                if data.diverging_epoch is not None or limit <= wanted.fetch_offset:
                    continue
                if bytes_max < 0:
                    raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "a negative limit")  # Kafka's answer to it
                planned = replica.partition.log.plan(
                    wanted.fetch_offset,
                    up_to_end_offset=limit,
                    size_bytes_max=bytes_max,
                    at_least_one_batch=size_bytes == 0 and not cold,
                )
                records = planned.take_nowait() if planned is not None else None
                if planned is None or records is None:
                    cold.append(len(results) - 1)
                    continue
                data.records = records
                if data.aborted is not None and records:
                    _list_aborted(data, replica, planned.next_offset)
            except BrokerError as failed:
                self._fail(fetch, data, failed, self._hint(wanted.key))
            else:
                size_bytes += len(records)
                bytes_left = max(0, bytes_left - len(records))
        results += missing
        return results, size_bytes, cold

    def _replica(self, fetch: Fetch, wanted: FetchPartition) -> Replica:
        return _replica_in(self._replicas_of(fetch, wanted), wanted)

    def _replicas_of(self, fetch: Fetch, wanted: FetchPartition) -> dict[int, Replica]:
        """This broker's replicas of a wanted partition's topic."""
        topic, _ = wanted.key
        if isinstance(topic, bytes):
            name = self._replicas.topic_name(TopicId(topic))
            if name is None:
                # A topic that went while a session had it is no longer there; one that never was is unknown.
                gone = wanted.was_found
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if gone else ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            name = topic
        connection = fetch.connection
        if not self._authorizer.allows(
            connection.principal, connection.peer_host, Operation.READ, ResourceType.TOPIC, name
        ):
            raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return self._replicas.of_topic(name)

    def _prepare(self, fetch: Fetch, data: PartitionData, replica: Replica) -> int:
        """Check the request against the partition, fill in its offsets; returns the end of what may be seen."""
        wanted, partition = data.wanted, replica.partition
        if not partition.is_leader or wanted.leader_epoch != partition.leader_epoch:
            partition.require_leader(wanted.leader_epoch)
        if fetch.replica_id >= 0:
            raise NotLeader(message="this partition has no other replica")
        log = partition.log
        if wanted.last_fetched_epoch >= 0:
            data.diverging_epoch = _divergence(partition.log.epochs, wanted, log.log_end_offset)
        log_start_offset = log.log_start_offset
        if data.diverging_epoch is None and not log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
            raise OffsetOutOfRange()
        data.high_watermark = partition.high_watermark
        data.last_stable_offset = partition.last_stable_offset
        data.log_start_offset = log_start_offset
        if fetch.read_committed:
            data.aborted = ()
            return data.last_stable_offset
        return log.log_end_offset if fetch.replica_id == DEBUGGING_CONSUMER else data.high_watermark

    async def _read_cold(self, fetch: Fetch, slot: Slot, results: list[PartitionData], cold: list[int]) -> None:
        """Read from the device, partition by partition within the limits; then answer, whatever min_bytes says."""
        bytes_left = fetch.bytes_max - sum(len(data.records) for data in results)
        at_least_one_batch = not any(data.records for data in results)
        server, reserved_bytes = self._server, 0
        try:
            for number in cold:
                data = results[number]
                wanted = data.wanted
                limit = data.last_stable_offset if fetch.read_committed else data.high_watermark
                if server.responses_are_piling_up:
                    bytes_left = min(1, bytes_left)
                if bytes_left <= 0 and not at_least_one_batch:
                    break
                size_bytes_max = max(0, min(wanted.max_bytes, bytes_left))
                reserved_bytes += size_bytes_max
                server.reserve_response_bytes(size_bytes_max)
                try:
                    replica = self._replica(fetch, wanted)
                    read = await replica.partition.log.read_cold(
                        wanted.fetch_offset,
                        up_to_end_offset=limit,
                        size_bytes_max=size_bytes_max,
                        at_least_one_batch=at_least_one_batch,
                    )
                    data.records = read.data
                    if data.aborted is not None and read.data:
                        _list_aborted(data, replica, read.next_offset)
                except BrokerError as failed:
                    self._fail(fetch, data, failed, self._hint(wanted.key))
                unread_bytes = size_bytes_max - len(data.records)
                reserved_bytes -= unread_bytes
                server.reserve_response_bytes(-unread_bytes)
                bytes_left -= len(data.records)
                at_least_one_batch = at_least_one_batch and not data.records
        finally:
            server.reserve_response_bytes(-reserved_bytes)
            answer(fetch, results, slot)

    # --- waiting

    def _is_enough(self, fetch: Fetch, results: Sequence[PartitionData], size_bytes: int) -> bool:
        if size_bytes >= fetch.min_bytes or fetch.max_wait_ms <= 0 or not fetch.wanted:
            return True
        return any(data.error_code or data.diverging_epoch is not None for data in results)

    def _awaits_flush(self, fetch: Fetch, results: Sequence[PartitionData]) -> bool:
        """Nothing was found, but something is there that only its flush keeps from being seen."""
        if any(data.error_code for data in results):
            return False
        return any(
            _awaits_flush(self._replica(fetch, data.wanted).partition, data.wanted.fetch_offset, fetch.read_committed)
            for data in results
        )

    def _park(self, fetch: Fetch, slot: Slot, size_bytes: int, wait_ms: int) -> None:
        replicas = [self._replica(fetch, wanted) for wanted in fetch.wanted]
        bytes_missing = fetch.min_bytes - size_bytes
        if fetch.read_committed and any(_has_undecided(replica) for replica in replicas):
            bytes_missing = 1  # what a marker will make visible is appended already, and would not be counted
        parked = ParkedFetch(replicas, bytes_missing, lambda force: self._wake(fetch, slot, force=force))
        self.parked_count += 1

        def leave() -> None:
            self.parked_count -= 1
            parked.leave()

        slot.on_abandoned = leave
        parked.wait(self._clock.call_later(wait_ms / 1000, parked.time_is_up))

    def _wake(self, fetch: Fetch, slot: Slot, *, force: bool) -> bool:
        """Try to answer a parked fetch; False: not enough yet, go on waiting."""
        results, size_bytes, cold = self._read(fetch)
        if not cold and not force and not self._is_enough(fetch, results, size_bytes):
            return False
        self.parked_count -= 1
        slot.on_abandoned = None
        if cold:
            self._tasks.spawn("read cold data", self._read_cold(fetch, slot, results, cold))
        else:
            answer(fetch, results, slot)
        return True

    # --- answering

    def _fail(self, fetch: Fetch, data: PartitionData, failed: BrokerError, leader: tuple[int, int] | None) -> None:
        self._meter.failed(failed.code)  # an error is never waited with: it will be sent
        _fail(fetch, data, failed, leader)

    def _hint(self, key: Key) -> tuple[int, int] | None:
        topic, index = key
        name = self._replicas.topic_name(TopicId(topic)) if isinstance(topic, bytes) else topic
        return self._replicas.leader_of(TopicPartition(name, index)) if name is not None else None


def _replica_in(replicas: dict[int, Replica], wanted: FetchPartition) -> Replica:
    replica = replicas.get(wanted.key[1])
    if replica is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    wanted.was_found = True
    return replica


def _list_aborted(data: PartitionData, replica: Replica, end_offset: int) -> None:
    """What of the data a read_committed consumer has to leave out. Kafka's list may reach further, up to its next
    index entry; whatever ends behind the data is still to come when the consumer reads on."""
    aborted = replica.partition.log.aborted
    if aborted:
        data.aborted = overlapping(aborted, from_offset=data.wanted.fetch_offset, up_to_end_offset=end_offset)


def _has_undecided(replica: Replica) -> bool:
    return replica.partition.log.producers.first_unstable_offset is not None


def _awaits_flush(partition: Partition, fetch_offset: int, read_committed: bool) -> bool:
    if not read_committed:
        return fetch_offset < partition.end_offset_when_flushed
    return partition.last_stable_offset <= fetch_offset < partition.stable_end_offset_when_flushed


def _failed_response(request: FetchRequest, version: int, correlation_id: int) -> list[Part]:
    """The whole request failed, in Kafka's form: before v13 with an error for each partition too."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    partitions = []
    if version < FIRST_WITH_TOPIC_ID:
        for wanted in asked_partitions(request, by_topic_id=False).values():
            data = PartitionData(wanted, code)
            data.aborted = ()
            partitions.append(data)
    return encode(version, correlation_id, partitions, error_code=code, session_id=request.session_id)


def _divergence(epochs: LeaderEpochs, wanted: FetchPartition, log_end_offset: int) -> tuple[int, int] | None:
    """KIP-595: (epoch, end offset) up to which the client's log can be like ours, if it must truncate."""
    epoch, end_offset = epochs.end_offset_for(wanted.last_fetched_epoch, log_end_offset)
    if epoch == NO_EPOCH or end_offset == NO_END_OFFSET:
        raise OffsetOutOfRange()
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None


def _fail(fetch: Fetch, data: PartitionData, failed: BrokerError, leader: tuple[int, int] | None) -> None:
    data.error_code = failed.code
    data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
    data.records = b""
    # Kafka lists no aborted transactions for what it does not find, and no list at all for what it can't read.
    data.aborted = () if failed.code in NOT_FOUND else None
    data.diverging_epoch = None
    if fetch.version >= FIRST_WITH_LEADER_HINTS and failed.code in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    ):
        data.current_leader = leader
