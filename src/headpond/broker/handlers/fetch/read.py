"""What a fetch reads: each wanted partition within the limits, from memory, or later from the device.

A narrow fetch is read in one go, a wide one a slice at a time (``wide``): a ``Reading`` is how far it has come. Of a
session only what may have something to tell is read (``session.py``).
"""

from __future__ import annotations

from collections.abc import Iterable

from headpond.broker.handlers.fetch.session import FetchPartition, Key, View
from headpond.broker.handlers.fetch.wanted import Fetch
from headpond.broker.handlers.fetch.wire import FIRST_WITH_LEADER_HINTS, PartitionData
from headpond.broker.net.server import Server
from headpond.broker.replicas.replicas import Replica, Replicas
from headpond.broker.security.authorizer import Authorizer, Operation, ResourceType
from headpond.model import (
    BrokerError,
    ErrorCode,
    NotLeader,
    OffsetOutOfRange,
    TopicId,
    TopicPartition,
)
from headpond.replication.partition import Partition
from headpond.storage.log.epochs import NO_END_OFFSET, NO_EPOCH, LeaderEpochs
from headpond.storage.producers.txn_index import overlapping
from headpond.telemetry.requests import RequestMeter

DEBUGGING_CONSUMER = -2  # may read up to the log's end
NOT_FOUND = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


class Reading:
    """What was found so far."""

    __slots__ = ("bytes_left", "cold", "is_urgent", "missing", "replicas", "results", "size_bytes")

    def __init__(self, bytes_left: int) -> None:
        self.bytes_left = bytes_left
        self.size_bytes = 0
        self.results: list[PartitionData] = []
        self.replicas: list[Replica] = []  # of the results, as they were when they were read
        self.missing: list[PartitionData] = []  # what does not exist comes last, as in Kafka
        self.cold: list[int] = []  # the numbers of the results whose data is not in memory
        self.is_urgent = False  # an error or a diverging log is answered at once

    def end(self) -> None:
        """All was read."""
        self.results += self.missing
        self.missing = []


class FetchReader:
    def __init__(self, replicas: Replicas, authorizer: Authorizer, server: Server, meter: RequestMeter) -> None:
        self._replicas = replicas
        self._authorizer = authorizer
        self._server = server
        self._meter = meter

    def due_count(self, fetch: Fetch) -> int:
        """How many partitions this fetch has to look at now."""
        session = fetch.standing
        return len(fetch.wanted) if session is None else session.due_count(self._view_of(fetch))

    def list_due(self, fetch: Fetch) -> None:
        """Have them in ``fetch.wanted``; ``end`` when all of them are read."""
        if fetch.standing is not None:
            fetch.view = self._view_of(fetch)
            fetch.wanted = fetch.standing.due(fetch.view)

    def look(self, fetch: Fetch, *, one_batch: bool = False) -> Reading:
        """Read all that has to be looked at, in one go."""
        self.list_due(fetch)
        reading = self.read(fetch, fetch.wanted, self.begin(fetch, one_batch=one_batch))
        self.end(fetch, reading)
        return reading

    def end(self, fetch: Fetch, reading: Reading) -> None:
        if reading.missing:
            reading.end()
        if fetch.standing is not None:
            fetch.standing.view = fetch.view

    def _view_of(self, fetch: Fetch) -> View:
        connection = fetch.connection
        return fetch.read_committed, connection.principal, connection.peer_host, self._authorizer.generation

    def begin(self, fetch: Fetch, *, one_batch: bool = False) -> Reading:
        is_cut = one_batch or self._server.responses_are_piling_up
        return Reading(1 if is_cut else fetch.bytes_max)

    def read(self, fetch: Fetch, wanted_now: Iterable[FetchPartition], reading: Reading) -> Reading:
        """Read these partitions, in order, after those that were read before."""
        session = fetch.standing
        results, found, cold = reading.results, reading.replicas, reading.cold
        bytes_left, size_bytes = reading.bytes_left, reading.size_bytes
        topic: str | bytes | None = None
        replicas: dict[int, Replica] = {}
        for wanted in wanted_now:
            data = PartitionData(wanted)
            if session is not None:
                session.look_again(wanted)
            try:
                if wanted.key[0] != topic:
                    replicas = self._replicas_of(fetch, wanted)
                    topic = wanted.key[0]
                replica = _replica_in(replicas, wanted)
            except BrokerError as failed:
                wanted.leave()
                self._fail(fetch, reading, data, failed, None)
                reading.missing.append(data)
                continue
            results.append(data)
            found.append(replica)
            bytes_max = min(wanted.max_bytes, bytes_left)
            bytes_left = max(0, bytes_left)  # a negative limit is the first partition's; the others have none left
            try:
                limit = self._prepare(fetch, data, replica)
                if data.diverging_epoch is not None:
                    reading.is_urgent = True
                    continue
                if limit <= wanted.fetch_offset:
                    if session is not None:
                        session.settle(data, replica)
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
                self._fail(fetch, reading, data, failed, self._hint(wanted.key))
            else:
                size_bytes += len(records)
                bytes_left = max(0, bytes_left - len(records))
        reading.bytes_left, reading.size_bytes = bytes_left, size_bytes
        return reading

    def new_bytes(self, fetch: Fetch, wanted: FetchPartition, replica: Replica) -> int | None:
        """How much there is to read of a partition; None: that is not known before it is read."""
        partition = replica.partition
        if fetch.read_committed and has_undecided(replica):
            return None
        try:
            planned = partition.log.plan(
                wanted.fetch_offset,
                up_to_end_offset=partition.last_stable_offset if fetch.read_committed else partition.high_watermark,
                size_bytes_max=max(0, min(wanted.max_bytes, fetch.bytes_max)),
                at_least_one_batch=True,
            )
        except BrokerError:
            return None
        return planned.size_bytes if planned is not None else None

    async def read_cold(self, fetch: Fetch, reading: Reading) -> None:
        """Read from the device, partition by partition within the limits. What is read counts as response memory."""
        bytes_left = fetch.bytes_max - reading.size_bytes
        at_least_one_batch = not reading.size_bytes
        server, reserved_bytes = self._server, 0
        try:
            for number in reading.cold:
                data = reading.results[number]
                if server.responses_are_piling_up:
                    bytes_left = min(1, bytes_left)
                if bytes_left <= 0 and not at_least_one_batch:
                    break
                size_bytes_max = max(0, min(data.wanted.max_bytes, bytes_left))
                reserved_bytes += size_bytes_max
                server.reserve_response_bytes(size_bytes_max)
                await self._read_cold(fetch, reading, data, size_bytes_max, at_least_one_batch)
                unread_bytes = size_bytes_max - len(data.records)
                reserved_bytes -= unread_bytes
                server.reserve_response_bytes(-unread_bytes)
                bytes_left -= len(data.records)
                at_least_one_batch = at_least_one_batch and not data.records
        finally:
            server.reserve_response_bytes(-reserved_bytes)

    async def _read_cold(
        self, fetch: Fetch, reading: Reading, data: PartitionData, size_bytes_max: int, at_least_one_batch: bool
    ) -> None:
        wanted = data.wanted
        try:
            replica = self.replica(fetch, wanted)
            read = await replica.partition.log.read_cold(
                wanted.fetch_offset,
                up_to_end_offset=data.last_stable_offset if fetch.read_committed else data.high_watermark,
                size_bytes_max=size_bytes_max,
                at_least_one_batch=at_least_one_batch,
            )
            data.records = read.data
            if data.aborted is not None and read.data:
                _list_aborted(data, replica, read.next_offset)
        except BrokerError as failed:
            self._fail(fetch, reading, data, failed, self._hint(wanted.key))

    def replica(self, fetch: Fetch, wanted: FetchPartition) -> Replica:
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

    def _fail(
        self,
        fetch: Fetch,
        reading: Reading,
        data: PartitionData,
        failed: BrokerError,
        leader: tuple[int, int] | None,
    ) -> None:
        self._meter.failed(failed.code)  # an error is never waited with: it will be sent
        reading.is_urgent = True
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


def has_undecided(replica: Replica) -> bool:
    return replica.partition.log.producers.first_unstable_offset is not None


def awaits_flush(fetch: Fetch, results: Iterable[PartitionData], replicas: Iterable[Replica]) -> bool:
    """Whether some of these have data that only its flush keeps from being seen."""
    for data, replica in zip(results, replicas, strict=False):
        if _awaits_flush(replica.partition, data.wanted.fetch_offset, fetch.read_committed):
            return True
    return False


def awaits_flush_where_it_stands(fetch: Fetch, partitions: Iterable[FetchPartition]) -> bool:
    """The same for partitions of a session that had nothing to tell."""
    for wanted in partitions:
        replica = wanted.replica
        if replica is not None and _awaits_flush(replica.partition, wanted.fetch_offset, fetch.read_committed):
            return True
    return False


def _awaits_flush(partition: Partition, fetch_offset: int, read_committed: bool) -> bool:
    if partition.high_watermark == partition.log.log_end_offset:
        return False
    if not read_committed:
        return fetch_offset < partition.end_offset_when_flushed
    return partition.last_stable_offset <= fetch_offset < partition.stable_end_offset_when_flushed


def _divergence(epochs: LeaderEpochs, wanted: FetchPartition, log_end_offset: int) -> tuple[int, int] | None:
    """KIP-595: (epoch, end offset) up to which the client's log can be like ours, if it must truncate."""
    epoch, end_offset = epochs.end_offset_for(wanted.last_fetched_epoch, log_end_offset)
    if epoch == NO_EPOCH or end_offset == NO_END_OFFSET:
        raise OffsetOutOfRange()
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
