"""Reads partitions from given offsets, to their ends or on and on. No group: who reads what is the caller's to say.

    async with Reader(client, {TopicPartition("orders", 0): EARLIEST}) as reader:
        async for batch in reader:
            for record in batch.records: ...

Promises    Each partition's batches come in order, each once, none left out, from the start offset (a number,
            ``EARLIEST`` or ``LATEST``) to the end: the offset in ``end_offsets``, else without ``follow`` the end that
            the partition had when reading began (under read_committed, the last stable offset), else never.
Leaders     One fetch per leader at a time, all side by side. When leadership moves, the partition follows it; answers
            that a later attempt may better are tried again until ``timeout_s`` went by without a good one, then raised.
            A topic that was deleted and made anew raises ``UNKNOWN_TOPIC_ID``: its offsets mean something else now.
Memory      No fetch is sent while ``buffer_bytes_max`` are waiting to be taken; beyond that come at most the answers on
            their way, ``max_bytes`` per leader (or one batch, where that is larger).
Not done    Fetch sessions, reading from the nearest replica, asking a new leader whether its log diverged (KIP-320: a
            fetch says which leader epoch it means, and is refused by any other leader, but not checked for truncation).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping
from types import TracebackType
from typing import Any, Literal

from headpond.client.client import ATTEMPT_TIMEOUT_S_MAX, Client
from headpond.client.errors import STALE_METADATA, ClientError, refusal
from headpond.client.fetched import FetchedBatch, RecordView, cut_batches
from headpond.client.offsets import EARLIEST, ISOLATION_LEVELS, LATEST, Isolation, list_offsets
from headpond.client.refresh import Refresh
from headpond.client.routing import is_worth_waiting, no_leader, topics_of
from headpond.client.waiting import Alarm, JitteredBackoff
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.fetch import FetchRequest, FetchResponse
from headpond.protocol.types import ZERO_UUID

__all__ = ["EARLIEST", "LATEST", "FetchedBatch", "Reader", "RecordView"]

FETCH_BY_NAME_VERSION_MAX = 12
OffsetReset = Literal["error", "earliest", "latest"]


class Reader:
    def __init__(
        self,
        client: Client,
        offsets: Mapping[TopicPartition, int],
        *,
        isolation: Isolation = "read_committed",
        follow: bool = False,
        end_offsets: Mapping[TopicPartition, int] | None = None,
        offset_reset: OffsetReset = "error",
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 8 * 1024 * 1024,
        partition_max_bytes: int = 1024 * 1024,
        buffer_bytes_max: int = 16 * 1024 * 1024,
        check_crcs: bool = True,
        is_raw: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """``is_raw``: control batches and empty ones come, too, for those who look into logs."""
        self._client = client
        self._is_raw = is_raw
        self._isolation: Isolation = isolation
        self._follow = follow
        self._offset_reset = offset_reset
        self._max_wait_ms, self._min_bytes = max_wait_ms, min_bytes
        self._max_bytes, self._partition_max_bytes = max_bytes, partition_max_bytes
        self._buffer_bytes_max = buffer_bytes_max
        self._check_crcs = check_crcs
        self._timeout_s = client.timeout_s if timeout_s is None else timeout_s
        self._lane = client.new_lane("reader")
        self._partitions = {
            tp: _Partition(client, tp, offset, (end_offsets or {}).get(tp)) for tp, offset in offsets.items()
        }
        self._queue: deque[FetchedBatch] = deque()
        self._queued_bytes = 0
        self._busy: set[int] = set()  # the nodes that a fetch is on its way to
        self._wake = Alarm(client.clock)  # for the task that sends fetches
        self._refresh = Refresh(client, self._timeout_s, self._wake.ring)
        self._ready = asyncio.Event()  # for whoever iterates
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_started = self._is_finished = False
        self._failure: BaseException | None = None

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop fetching and drop what was not taken. Closing twice does nothing."""
        self._finish(None)
        self._queue.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        self._client.close_lane(self._lane)
        if tasks:
            await asyncio.wait(tasks)

    def __aiter__(self) -> AsyncIterator[FetchedBatch]:
        return self

    async def __anext__(self) -> FetchedBatch:
        """The next batch of any partition. What was fetched before a failure comes before the failure is raised."""
        if not await self._has_batch():
            raise StopAsyncIteration
        return self._taken(self._queue.popleft())

    async def take(self) -> list[FetchedBatch]:
        """All batches that wait, at least one, in the order of iteration; none at the end. For those who work on whole
        answers."""
        if not await self._has_batch():
            return []
        return [self._taken(self._queue.popleft()) for _ in range(len(self._queue))]

    async def _has_batch(self) -> bool:
        if not self._is_started:
            self._is_started = True
            self._spawn("run", self._run())
        while not self._queue:
            if self._failure is not None:
                raise self._failure
            if self._is_finished:
                return False
            self._ready.clear()
            await self._ready.wait()
        return True

    def _taken(self, batch: FetchedBatch) -> FetchedBatch:
        self._queued_bytes -= len(batch.data)
        partition = self._partitions[batch.tp]
        partition.queued_count -= 1
        partition.taken_offset = batch.next_offset
        self._wake.ring()
        return batch

    def position(self, tp: TopicPartition) -> int:
        """The offset after what was taken from this reader; ``EARLIEST`` or ``LATEST`` until the start is known."""
        partition = self._partitions[tp]
        return partition.taken_offset if partition.queued_count else partition.next_offset

    # ---- the task that sends fetches

    async def _run(self) -> None:
        await self._find_bounds()
        while any(not partition.is_done for partition in self._partitions.values()):
            wait_s = self._send_fetches() if self._queued_bytes < self._buffer_bytes_max else None
            await self._wake.wait(wait_s)
        self._finish(None)

    async def _find_bounds(self) -> None:
        """Turn EARLIEST and LATEST into numbers, and learn the ends where that is where reading stops."""
        partitions = self._partitions.values()
        if not self._follow:
            unbounded = [one for one in partitions if one.end_offset is None]
            for one, offset in (await self._list(unbounded, LATEST)).items():
                one.end_offset = offset
        for special in (EARLIEST, LATEST):
            wanted = [one for one in partitions if one.next_offset == special]
            for one, offset in (await self._list(wanted, special)).items():
                one.next_offset = offset

    async def _list(self, partitions: list[_Partition], spec: int) -> dict[_Partition, int]:
        if not partitions:
            return {}
        specs = {one.tp: spec for one in partitions}
        listed = await list_offsets(self._client, specs, isolation=self._isolation, timeout_s=self._timeout_s)
        offsets = {}
        for one in partitions:
            result = listed[one.tp]
            if isinstance(result, ClientError):
                raise result
            offsets[one] = result.offset
        return offsets

    def _send_fetches(self) -> float | None:
        """A fetch to each leader that has none on its way; returns when to look again, in seconds."""
        now_s = self._client.clock.monotonic()
        by_node: dict[int, list[_Partition]] = {}
        retry_s: float | None = None
        for partition in self._partitions.values():
            if partition.is_done or partition.is_busy:
                continue
            if partition.retry_at_s > now_s:
                retry_s = min(retry_s or partition.retry_at_s, partition.retry_at_s)
                continue
            if (leader := self._client.cluster.leader(partition.tp)) is None:
                self._failed(partition, no_leader(self._client, partition.tp))
                retry_s = min(retry_s or partition.retry_at_s, partition.retry_at_s)
            elif leader.leader not in self._busy and self._is_same_topic(partition):
                partition.leader_epoch = leader.leader_epoch
                by_node.setdefault(leader.leader, []).append(partition)
        for node_id, partitions in sorted(by_node.items()):
            self._busy.add(node_id)
            for partition in partitions:
                partition.is_busy = True
            self._spawn(f"fetch-{node_id}", self._fetch(node_id, partitions))
        if (work := self._refresh.work()) is not None:
            self._spawn("metadata", work)
        return None if retry_s is None else retry_s - now_s

    def _is_same_topic(self, partition: _Partition) -> bool:
        topic = self._client.cluster.topic(partition.tp.topic)
        topic_id = ZERO_UUID if topic is None else topic.topic_id
        if partition.topic_id in (None, ZERO_UUID):
            partition.topic_id = topic_id
        if partition.topic_id != topic_id:
            what = f"{partition.tp.topic} was deleted and made anew while it was read"
            self._finish(ClientError(ErrorCode.UNKNOWN_TOPIC_ID, what))
        return partition.topic_id == topic_id

    # ---- one fetch

    async def _fetch(self, node_id: int, partitions: list[_Partition]) -> None:
        try:
            response = await self._ask(node_id, partitions)
        except ClientError as error:
            for partition in partitions:
                self._failed(partition, error)
        else:
            await self._answered(partitions, response)
        finally:
            self._busy.discard(node_id)
            for partition in partitions:
                partition.is_busy = False
            self._wake.ring()

    async def _ask(self, node_id: int, partitions: list[_Partition]) -> FetchResponse:
        by_tp = {one.tp: one for one in partitions}
        topics = [
            FetchRequest.FetchTopic(
                topic=name,
                topic_id=by_tp[tps[0]].topic_id or ZERO_UUID,
                partitions=[by_tp[tp].wanted(self._partition_max_bytes) for tp in tps],
            )
            for name, tps in topics_of(by_tp).items()
        ]
        request = FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=ISOLATION_LEVELS[self._isolation],
            topics=topics,
        )
        has_ids = all(topic.topic_id != ZERO_UUID for topic in topics)
        response: FetchResponse = await self._client.request(
            request,
            node_id,
            self._max_wait_ms / 1_000 + min(ATTEMPT_TIMEOUT_S_MAX, self._timeout_s),
            version_max=None if has_ids else FETCH_BY_NAME_VERSION_MAX,
            lane=self._lane,
        )
        if response.error_code:
            raise refusal(response.error_code, f"fetch from broker {node_id}")
        return response

    async def _answered(self, partitions: list[_Partition], response: FetchResponse) -> None:
        by_tp = {one.tp: one for one in partitions}
        names = {one.topic_id: one.tp.topic for one in partitions if one.topic_id != ZERO_UUID}
        out_of_range: list[_Partition] = []
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for answer in topic.partitions:
                partition = by_tp.get(TopicPartition(name, answer.partition_index))
                if partition is None:
                    continue
                if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self._offset_reset != "error":
                    out_of_range.append(partition)
                elif answer.error_code:
                    self._failed(partition, partition.refusal(answer))
                else:
                    self._take(partition, answer)
        if response.throttle_time_ms > 0:
            for partition in partitions:
                partition.pause(response.throttle_time_ms / 1_000)
        spec = EARLIEST if self._offset_reset == "earliest" else LATEST
        for partition, offset in (await self._list(out_of_range, spec)).items():
            partition.next_offset = offset

    def _take(self, partition: _Partition, answer: FetchResponse.PartitionData) -> None:
        cut = cut_batches(
            partition.tp,
            answer,
            from_offset=partition.next_offset,
            end_offset=partition.end_offset,
            is_read_committed=self._isolation == "read_committed",
            is_raw=self._is_raw,
            check_crcs=self._check_crcs,
        )
        partition.succeeded()
        if cut.next_offset != partition.next_offset:
            # Who got data goes to the end of the line, or a full answer would always serve the same ones.
            self._partitions[partition.tp] = self._partitions.pop(partition.tp)
        if not partition.queued_count:
            partition.taken_offset = partition.next_offset
        partition.next_offset = cut.next_offset
        partition.queued_count += len(cut.batches)
        self._queue += cut.batches
        self._queued_bytes += sum(len(batch.data) for batch in cut.batches)
        if cut.batches:
            self._ready.set()

    # ---- failure and the end

    def _failed(self, partition: _Partition, error: ClientError) -> None:
        if not partition.has_patience(error, self._timeout_s):
            self._finish(error)
        elif error.code in STALE_METADATA:
            self._refresh.want(partition.tp.topic)

    def _finish(self, failure: BaseException | None) -> None:
        if not self._is_finished:
            self._is_finished = True
            self._failure = failure
            self._ready.set()
            for partition in self._partitions.values():
                partition.is_done_by_force = True
            self._wake.ring()

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._client.tasks.spawn(f"{self._lane}-{name}", self._guarded(work))
        self._tasks[task] = None
        task.add_done_callback(lambda _: self._tasks.pop(task, None))
        task.add_done_callback(lambda _: work.close())  # who is cancelled before the first step never began it

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Whatever goes wrong reaches whoever iterates."""
        try:
            await work
        except asyncio.CancelledError:
            self._finish(None)
            raise
        except Exception as error:
            self._finish(error)


class _Partition:
    """Where one partition's reading stands."""

    def __init__(self, client: Client, tp: TopicPartition, offset: int, end_offset: int | None) -> None:
        self._clock = client.clock
        self._backoff = JitteredBackoff(client.random)
        self._failing_since_s: float | None = None
        self.tp = tp
        self.next_offset = offset
        self.end_offset = end_offset
        self.topic_id: bytes | None = None
        self.leader_epoch = -1
        self.taken_offset = offset
        self.queued_count = 0
        self.retry_at_s = 0.0
        self.is_busy = False
        self.is_done_by_force = False

    @property
    def is_done(self) -> bool:
        return self.is_done_by_force or (self.end_offset is not None and self.next_offset >= self.end_offset)

    def wanted(self, bytes_max: int) -> FetchRequest.FetchPartition:
        return FetchRequest.FetchPartition(
            partition=self.tp.partition,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self.next_offset,
            partition_max_bytes=bytes_max,
        )

    def refusal(self, answer: FetchResponse.PartitionData) -> ClientError:
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            what = f"{self.tp}: offset {self.next_offset} is not in the log"
            if answer.log_start_offset >= 0:
                what += f", which begins at {answer.log_start_offset}"
            return ClientError(ErrorCode.OFFSET_OUT_OF_RANGE, what)
        return refusal(answer.error_code, f"reading {self.tp} at offset {self.next_offset}")

    def has_patience(self, error: ClientError, timeout_s: float) -> bool:
        """Whether to try again after this error; the pause before that is set."""
        now_s = self._clock.monotonic()
        if self._failing_since_s is None:
            self._failing_since_s = now_s
        self.pause(self._backoff.next_s())
        return is_worth_waiting(error.code, self.retry_at_s - self._failing_since_s, timeout_s)

    def pause(self, seconds: float) -> None:
        self.retry_at_s = self._clock.monotonic() + seconds

    def succeeded(self) -> None:
        self._failing_since_s = None
        self._backoff.reset()
