"""Writes records, each once and in order.

    async with Producer(client, compression="zstd") as producer:
        delivery = await producer.send("orders", None, Record(b"key", b"value"))     # taken; waits only for memory
        place = await delivery                                                       # written: partition and offset
        await producer.flush()                                                       # everything taken has an outcome

Promises    Records of one partition are written in the order in which they were taken. With ``idempotent`` (the default
            with acks=-1) a batch is sent again after whatever a later attempt may better, until ``delivery_timeout_s``,
            and still written once. Without, it is sent again only when it certainly was not written: never twice.
            Memory for records without an outcome is bounded by ``buffer_bytes_max``: ``send`` waits.
Failures    Each record's ``Delivery`` raises what became of it; ``ClientError.is_outcome_unknown`` says that it may
            have been written after all. Later records are written all the same.
How         One batch per partition is on its way at a time (see ``PartitionQueue``), partitions side by side in one
            request per leader. A batch whose outcome stays unknown starts a new producer epoch for its partition.
Not done    Transactions.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Literal

from headpond.client.client import Client
from headpond.client.delivery import Sender, SenderSettings
from headpond.client.errors import ClientClosed, ClientError
from headpond.client.metadata import TopicView
from headpond.client.outbox import Delivery, Memory, Outgoing, Record, RecordPlace, size_bytes_max
from headpond.client.partitioner import StickyPartitions, partition_for_key
from headpond.client.routing import is_worth_waiting, no_leader
from headpond.client.waiting import JitteredBackoff, within
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.compression import CODEC_NAMES

__all__ = ["Delivery", "Producer", "Record", "RecordPlace"]

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
METADATA_AGE_S_MAX = 300.0
"""Partitions that are added to a topic get their share of its keys after at most this time."""
REQUEST_OVERHEAD_BYTES = 512
"""What a request takes beside its batches, the topic's name included: left free in ``request_bytes_max``."""


class Producer:
    def __init__(
        self,
        client: Client,
        *,
        acks: int = -1,
        compression: Compression = "none",
        compression_level: int | None = None,
        linger_ms: float = 5,
        batch_size_bytes: int = 512 * 1024,
        request_bytes_max: int = 1024 * 1024,
        buffer_bytes_max: int = 32 * 1024 * 1024,
        idempotent: bool | None = None,
        delivery_timeout_s: float = 120.0,
        request_timeout_s: float | None = None,
        auto_create_topics: bool = False,
    ) -> None:
        """``acks``: -1 all in-sync replicas, 1 the leader, 0 nobody says whether it was written. ``idempotent`` None:
        yes with acks=-1, which it needs."""
        if acks not in (-1, 0, 1):
            raise ValueError(f"acks={acks}: -1 (all), 0 or 1 are possible")
        if idempotent and acks != -1:
            raise ValueError(f"an idempotent producer needs acks=-1, not {acks}")
        if compression not in CODEC_NAMES:
            raise ValueError(f"compression {compression!r}: one of {', '.join(CODEC_NAMES)} is possible")
        self._client = client
        self._codec = CODEC_NAMES.index(compression)
        self._level = compression_level
        self._batch_size_bytes = min(batch_size_bytes, request_bytes_max - REQUEST_OVERHEAD_BYTES)
        self._record_bytes_max = request_bytes_max - REQUEST_OVERHEAD_BYTES
        self._auto_create_topics = auto_create_topics
        self._memory = Memory(buffer_bytes_max)
        self._sticky = StickyPartitions(client.random, self._batch_size_bytes)
        self._ask_again_at_s: dict[str, float] = {}
        self._sender = Sender(
            client,
            self._memory,
            SenderSettings(
                acks=acks,
                is_idempotent=acks == -1 if idempotent is None else idempotent,
                linger_s=linger_ms / 1_000,
                request_bytes_max=request_bytes_max,
                delivery_timeout_s=delivery_timeout_s,
                request_timeout_s=client.timeout_s if request_timeout_s is None else request_timeout_s,
            ),
        )

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(is_abrupt=kind is not None)

    async def send(self, topic: str, partition: int | None, record: Record) -> Delivery:
        """Take one record. ``partition`` None: by its key's hash, or any.

        Raises having taken nothing: ``MESSAGE_TOO_LARGE``, an unknown topic or partition, no broker to ask about it,
        or ``REQUEST_TIMED_OUT`` when no memory came free in time.
        """
        size_bytes = size_bytes_max(record)
        if size_bytes > self._record_bytes_max:
            what = f"a record of {size_bytes} bytes does not fit into a request of {self._record_bytes_max}"
            raise ClientError(ErrorCode.MESSAGE_TOO_LARGE, what)
        view = self._client.cluster.topic(topic)
        if view is None or self._client.clock.monotonic() >= self._ask_again_at_s.get(topic, 0.0):
            view = await self._ask_topic(topic)
        if partition is not None and not 0 <= partition < len(view.partitions):
            view = await self._ask_topic(topic)
            if not 0 <= partition < len(view.partitions):
                raise no_leader(self._client, TopicPartition(topic, partition))
        if not self._memory.try_take(size_bytes):
            await self._wait_for_memory(size_bytes)
        if self._sender.is_closed:
            self._memory.release(size_bytes)
            raise ClientClosed
        try:  # no await from here on: what was chosen is what is used, in the order of the calls
            if partition is None:
                partition = self._choose(view, record, size_bytes)
            delivery, is_new_batch = self._append(TopicPartition(topic, partition), record, size_bytes)
        except BaseException:  # no bytes, or a header without a name
            self._memory.release(size_bytes)
            raise
        if is_new_batch:
            await asyncio.sleep(0)  # a caller who never waits for anything else must not keep batches from leaving
        return delivery

    async def flush(self) -> None:
        """Send what is waiting now; returns when every record that was taken before has an outcome, good or bad."""
        await self._sender.flush()

    async def close(self, *, is_abrupt: bool = False) -> None:
        """Flush and stop. ``is_abrupt``: without flushing; what has no outcome fails."""
        try:
            if not is_abrupt:
                await self.flush()
        finally:
            await self._sender.close()

    def _choose(self, topic: TopicView, record: Record, size_bytes: int) -> int:
        if record.key is not None:
            return partition_for_key(record.key, len(topic.partitions))
        return self._sticky.choose(topic, size_bytes)

    def _append(self, tp: TopicPartition, record: Record, size_bytes: int) -> tuple[Delivery, bool]:
        queue = self._sender.queue(tp)
        clock = self._client.clock
        timestamp_ms = clock.now_ms() if record.timestamp_ms is None else record.timestamp_ms
        last = queue.batches[-1] if queue.batches else None
        if last is not None and not last.is_closed:
            if last.size_bytes + size_bytes <= self._batch_size_bytes:
                return last.append(record, timestamp_ms, size_bytes), False
            last.is_closed = True
        batch = Outgoing(tp, clock.monotonic(), self._codec, self._level)
        delivery = batch.append(record, timestamp_ms, size_bytes)
        self._sender.add(queue, batch)
        return delivery, True

    async def _wait_for_memory(self, size_bytes: int) -> None:
        turn = self._memory.queue_up(size_bytes)
        self._sender.wake()  # a batch that lingers is sent now: its memory is needed
        is_ours = False
        try:
            await within(self._client.clock, self._client.timeout_s, turn)
            is_ours = True
        except TimeoutError:
            what = "no memory for another record in time: the broker takes them too slowly"
            raise ClientError(ErrorCode.REQUEST_TIMED_OUT, what) from None
        finally:
            if not is_ours:
                self._memory.give_up(turn, size_bytes)

    async def _ask_topic(self, name: str) -> TopicView:
        """The topic, asked of a broker, with patience for one that is just being made."""
        clock = self._client.clock
        started_s = clock.monotonic()
        self._ask_again_at_s[name] = started_s + METADATA_AGE_S_MAX
        timeout_s = self._client.timeout_s
        backoff = JitteredBackoff(self._client.random)
        while True:
            left_s = started_s + timeout_s - clock.monotonic()
            try:
                answer = await self._client.metadata([name], left_s, auto_create=self._auto_create_topics)
            except ClientError:
                if (view := self._client.cluster.topic(name)) is not None:
                    return view  # old news will do
                raise
            heard = answer.topics[name]
            view = self._client.cluster.topic(name)
            if view is not None and view.partitions:
                return view
            pause_s = backoff.next_s()
            error = no_leader(self._client, TopicPartition(name, 0))
            if heard.error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                error = ClientError(heard.error, f"topic {name}: {heard.error.name}")
            if not is_worth_waiting(error.code, clock.monotonic() + pause_s - started_s, timeout_s):
                raise error
            await clock.sleep(pause_s)
