"""Gets a producer's batches to their leaders: when, in which request, and what the answer means for each.

The states of a batch:  waiting -> in flight -> written
                           ^            |-> refused, a later attempt may succeed: waiting again, with the same sequence
                           |            |-> too large: two halves wait in its place
                           +------------+-> refused for good, or time is up: failed

A crash of ours loses what has no outcome yet; a crash of the broker is a lost connection, and the batch is sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from headpond.client.client import Client
from headpond.client.errors import STALE_METADATA, ClientClosed, ClientError, RequestTimedOut, refusal
from headpond.client.outbox import NOBODY, Identity, Memory, Outgoing, PartitionQueue
from headpond.client.refresh import Refresh
from headpond.client.routing import no_leader, topics_of
from headpond.client.waiting import Alarm, JitteredBackoff
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.produce import ProduceRequest, ProduceResponse
from headpond.protocol.types import ZERO_UUID

IN_FLIGHT_PER_NODE_MAX = 5
"""Requests on their way to one broker, each with other partitions; Kafka's default."""
PRODUCE_BY_NAME_VERSION_MAX = 12
TRANSACTIONAL_VERSION_MAX = 11
"""From v12 on a Produce adds its partitions to the transaction by itself; ours are added before (``Transaction``)."""
_TRANSACTION_TIMEOUT_MS = 60_000  # a field of InitProducerId that must be positive and means nothing without one


@dataclass(frozen=True, slots=True)
class SenderSettings:
    request_bytes_max: int
    delivery_timeout_s: float
    request_timeout_s: float
    acks: int = -1
    is_idempotent: bool = True
    linger_s: float = 0.0


class Sender:
    def __init__(
        self,
        client: Client,
        memory: Memory,
        settings: SenderSettings,
        *,
        identity: Identity | None = None,
        transactional_id: str | None = None,
        stops_at_failure: bool = False,
    ) -> None:
        """``identity``: as whom to write (None: asks for a producer id). ``stops_at_failure``: what one batch fails
        with is what all later ones fail with; ``failure`` tells."""
        self._client = client
        self._clock = client.clock
        self._memory = memory
        self._acks = settings.acks
        self._is_idempotent = settings.is_idempotent
        self._linger_s = settings.linger_s
        self._request_bytes_max = settings.request_bytes_max
        self._delivery_timeout_s = settings.delivery_timeout_s
        self._request_timeout_s = settings.request_timeout_s
        self._lane = client.new_lane("producer")
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._active: dict[TopicPartition, PartitionQueue] = {}  # those with batches, in the order of their turns
        self._in_flight: dict[int, int] = {}
        self._backoffs: dict[TopicPartition, JitteredBackoff] = {}
        self._is_asking_id = False
        self._identity = identity
        self._transactional_id = transactional_id
        self._stops_at_failure = stops_at_failure or transactional_id is not None
        self.failure: ClientError | None = None
        self._alarm = Alarm(client.clock)
        self._refresh = Refresh(client, settings.request_timeout_s, self._alarm.ring)
        self._flushes = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_started = False
        self.is_closed = False

    # ---- for the producer

    def queue(self, tp: TopicPartition) -> PartitionQueue:
        queue = self._queues.get(tp)
        if queue is None:
            queue = self._queues[tp] = PartitionQueue(tp)
        return queue

    def add(self, queue: PartitionQueue, batch: Outgoing) -> None:
        """A batch, empty as yet, behind the others of its partition."""
        queue.batches.append(batch)
        self._active[queue.tp] = queue
        if not self._is_started:
            self._is_started = True
            self._spawn("run", self._run())
        self._alarm.ring()

    def wake(self) -> None:
        self._alarm.ring()

    async def flush(self) -> None:
        waiting = [batch for queue in self._active.values() for batch in queue.batches]
        self._flushes += 1
        self._alarm.ring()
        try:
            while waiting:
                await asyncio.wait([batch.done for batch in waiting])
                waiting = [half for batch in waiting for half in batch.halves]
        finally:
            self._flushes -= 1

    async def close(self) -> None:
        """Stop. What has no outcome fails; what was in flight may have been written."""
        self.is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        self._client.close_lane(self._lane)
        if tasks:
            await asyncio.wait(tasks)
        self._fail_all(ClientClosed())

    # ---- when to send

    async def _run(self) -> None:
        while True:
            await self._alarm.wait(self._send_due())

    def _send_due(self) -> float | None:
        """Send what is due; returns after how many seconds to look again."""
        now_s = self._clock.monotonic()
        next_s: float | None = None
        by_node: dict[int, list[PartitionQueue]] = {}
        for queue in list(self._active.values()):
            if self.failure is not None and not queue.is_in_flight:
                while queue.batches:
                    self._fail(queue, self.failure)
                continue
            due_s = self._due_in(queue, now_s)
            if due_s is None:
                continue
            if due_s > 0:
                next_s = due_s if next_s is None else min(next_s, due_s)
            elif self._has_identity(queue):
                leader = self._client.cluster.leader(queue.tp)
                if leader is None:
                    self._retry_or_fail(queue, no_leader(self._client, queue.tp))
                    self._alarm.ring()
                else:
                    by_node.setdefault(leader.leader, []).append(queue)
        for node_id, queues in sorted(by_node.items()):
            self._send_to(node_id, queues)
        if (work := self._refresh.work()) is not None:
            self._spawn("metadata", work)
        return next_s

    def _due_in(self, queue: PartitionQueue, now_s: float) -> float | None:
        """Seconds until the queue's first batch is to be sent; None: not before somebody rings."""
        if queue.is_in_flight:
            return None
        while queue.batches and now_s >= queue.batches[0].created_at_s + self._delivery_timeout_s:
            self._fail(queue, self._out_of_time(queue))
        if not queue.batches:
            return None
        batch = queue.batches[0]
        is_urgent = batch.is_closed or self._flushes > 0 or self._memory.has_waiters
        due_at_s = max(0.0 if is_urgent else batch.created_at_s + self._linger_s, queue.retry_at_s)
        # At the latest, when the batch's time is up.
        return min(due_at_s, batch.created_at_s + self._delivery_timeout_s) - now_s

    def _out_of_time(self, queue: PartitionQueue) -> ClientError:
        last_error = queue.batches[0].last_error
        what = f"{queue.tp}: not delivered within {self._delivery_timeout_s:g} s"
        if last_error is None:
            return ClientError(ErrorCode.BROKER_NOT_AVAILABLE, what)
        return ClientError(last_error.code, f"{what}: {last_error}")

    def _has_identity(self, queue: PartitionQueue) -> bool:
        """Whether we know as whom to write; asks for a producer id where we don't."""
        if queue.identity is None:
            if not self._is_idempotent:
                queue.identity = NOBODY
            elif self._identity is not None:
                queue.identity = self._identity
            elif not self._is_asking_id:
                self._is_asking_id = True
                self._spawn("init-producer-id", self._ask_identity())
        return queue.identity is not None

    async def _ask_identity(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS)
        backoff = JitteredBackoff(self._client.random)
        try:
            while self._active:  # until all have failed: each batch has its own patience
                try:
                    response = await self._client.request(request, None, self._request_timeout_s, lane=self._lane)
                    if not response.error_code:
                        self._identity = Identity(response.producer_id, response.producer_epoch, 0)
                        return
                    error = refusal(response.error_code, "a producer id")
                except ClientError as caught:
                    error = caught
                if not error.is_retriable:
                    self._fail_all(error)
                    return
                self._alarm.ring()  # batches whose time is up fail meanwhile
                await self._clock.sleep(backoff.next_s())
        finally:
            self._is_asking_id = False
            self._alarm.ring()

    # ---- one request

    def _send_to(self, node_id: int, queues: list[PartitionQueue]) -> None:
        """As many requests as fit: what does not fit is looked at again when an answer comes."""
        while queues and self._in_flight.get(node_id, 0) < IN_FLIGHT_PER_NODE_MAX:
            chosen: list[PartitionQueue] = []
            size_bytes = 0
            while queues and (not chosen or size_bytes + queues[0].batches[0].size_bytes <= self._request_bytes_max):
                queue = queues.pop(0)
                size_bytes += queue.batches[0].size_bytes
                queue.is_in_flight = True
                # Behind the others, or a busy partition would keep them from their turn.
                self._active[queue.tp] = self._active.pop(queue.tp)
                chosen.append(queue)
            self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
            self._spawn(f"produce-{node_id}", self._deliver(node_id, chosen))

    async def _deliver(self, node_id: int, queues: list[PartitionQueue]) -> None:
        batches = [queue.batches[0] for queue in queues]
        try:
            request = self._request(queues)
            response: ProduceResponse | None = await self._client.request(
                request,
                node_id,
                self._request_timeout_s,
                version_max=self._version_max(request),
                lane=self._lane,
                is_answered=self._acks != 0,
            )
            self._answered(queues, response, request)
        except ClientError as error:
            for queue in queues:
                self._retry_or_fail(queue, error)
        except BaseException as error:  # we are being stopped, or have a bug: once more would only repeat it
            for queue, batch in zip(queues, batches, strict=True):
                batch.is_outcome_unknown = True
                if isinstance(error, Exception) and queue.batches and queue.batches[0] is batch:
                    self._fail(queue, ClientError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{queue.tp}: {error!r}"))
            raise
        finally:
            self._in_flight[node_id] -= 1
            for queue in queues:
                queue.is_in_flight = False
            self._alarm.ring()

    def _request(self, queues: list[PartitionQueue]) -> ProduceRequest:
        by_tp = {queue.tp: queue for queue in queues}
        topics = []
        for name, tps in topics_of(by_tp).items():
            view = self._client.cluster.topic(name)
            data = [
                ProduceRequest.PartitionProduceData(
                    index=tp.partition, records=by_tp[tp].batches[0].encode(by_tp[tp].identity or NOBODY)
                )
                for tp in tps
            ]
            topic_id = ZERO_UUID if view is None else view.topic_id
            topics.append(ProduceRequest.TopicProduceData(name=name, topic_id=topic_id, partition_data=data))
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=int(self._request_timeout_s * 1_000),
            topic_data=topics,
        )

    def _version_max(self, request: ProduceRequest) -> int | None:
        if self._transactional_id is not None:
            return TRANSACTIONAL_VERSION_MAX
        has_ids = all(topic.topic_id != ZERO_UUID for topic in request.topic_data)
        return None if has_ids else PRODUCE_BY_NAME_VERSION_MAX

    def _answered(
        self, queues: list[PartitionQueue], response: ProduceResponse | None, request: ProduceRequest
    ) -> None:
        if response is None:  # acks 0: nobody will ever say more
            for queue in queues:
                self._succeed(queue, -1, -1)
            return
        names = {topic.topic_id: topic.name for topic in request.topic_data}
        answers = {
            TopicPartition(topic.name or names.get(topic.topic_id, ""), one.index): one
            for topic in response.responses
            for one in topic.partition_responses
        }
        for queue in queues:
            answer = answers.get(queue.tp)
            if answer is None:
                queue.batches[0].is_outcome_unknown = True
                what = f"{queue.tp}: the broker's answer leaves it out"
                self._fail(queue, ClientError(ErrorCode.UNKNOWN_SERVER_ERROR, what))
            else:
                self._judge(queue, answer)
        if response.throttle_time_ms > 0:
            until_s = self._clock.monotonic() + response.throttle_time_ms / 1_000
            for queue in queues:
                queue.retry_at_s = max(queue.retry_at_s, until_s)

    def _judge(self, queue: PartitionQueue, answer: ProduceResponse.PartitionProduceResponse) -> None:
        batch = queue.batches[0]
        code = answer.error_code
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._succeed(queue, answer.base_offset, answer.log_append_time_ms)
        elif code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE) and (
            batch.count > 1 and batch.is_divisible
        ):
            queue.batches.popleft()
            queue.batches.extendleft(reversed(batch.split()))
        elif code == ErrorCode.UNKNOWN_PRODUCER_ID and not (batch.is_outcome_unknown or self._transactional_id):
            # The broker forgot us, for we were silent for long. This batch it certainly did not write.
            queue.change_identity()
        else:
            error = refusal(code, str(queue.tp), answer.error_message)
            record_errors = {one.batch_index: one.batch_index_error_message or "" for one in answer.record_errors}
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                # Records that it acknowledged are gone from the broker's log. Those who wrote this batch are told.
                queue.change_identity()
            elif code == ErrorCode.INVALID_PRODUCER_EPOCH:
                queue.identity = self._identity = None
            self._retry_or_fail(queue, error, record_errors)

    # ---- outcomes

    def _succeed(self, queue: PartitionQueue, base_offset: int, append_time_ms: int) -> None:
        self._backoffs.pop(queue.tp, None)
        queue.retry_at_s = 0.0
        batch = queue.head_succeeded()
        batch.succeeded(base_offset, append_time_ms)
        self._ended(queue, batch)

    def _retry_or_fail(
        self, queue: PartitionQueue, error: ClientError, record_errors: dict[int, str] | None = None
    ) -> None:
        batch = queue.batches[0]
        batch.last_error = error
        if error.is_outcome_unknown:
            batch.is_outcome_unknown = True
        may_repeat = self._is_idempotent or not error.is_outcome_unknown
        if not (error.is_retriable and may_repeat):
            self._fail(queue, error, record_errors)
            return
        backoff = self._backoffs.setdefault(queue.tp, JitteredBackoff(self._client.random))
        queue.retry_at_s = self._clock.monotonic() + backoff.next_s()
        if queue.retry_at_s >= batch.created_at_s + self._delivery_timeout_s:
            self._fail(queue, error)
        elif error.code in STALE_METADATA:
            self._refresh.want(queue.tp.topic)

    def _fail(self, queue: PartitionQueue, error: ClientError, record_errors: dict[int, str] | None = None) -> None:
        batch = queue.head_failed()
        if batch.is_outcome_unknown and not error.is_outcome_unknown:
            error = RequestTimedOut(f"{error}; it may have been written by an earlier attempt")
        if self._stops_at_failure and self.failure is None:
            self.failure = error
            self._alarm.ring()
        batch.failed(error, record_errors)
        self._ended(queue, batch)

    def _ended(self, queue: PartitionQueue, batch: Outgoing) -> None:
        if not queue.batches:
            self._active.pop(queue.tp, None)
        self._memory.release(batch.memory_bytes)

    def _fail_all(self, error: ClientError) -> None:
        for queue in list(self._active.values()):
            while queue.batches:
                self._fail(queue, error)

    # ---- helpers

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._client.tasks.spawn(f"{self._lane}-{name}", work)
        self._tasks[task] = None
        task.add_done_callback(lambda _: self._tasks.pop(task, None))
