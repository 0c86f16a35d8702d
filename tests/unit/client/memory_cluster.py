"""Brokers in memory behind the Network port: they keep batches, tell duplicates, move leaders, and fail on demand.

``cluster.faults`` decides what becomes of each request: a function of (node, request) that returns one of the words
below, or an error code for every partition of the request. Time stands still but for ``run``, which jumps from timer to
timer, so a test of time-outs takes no time and chance has no part in it.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from headpond.client import Client
from headpond.ports import Tls
from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.header import RequestHeader, decode_request_header
from headpond.protocol.records.header import read_header
from headpond.protocol.schema.api_versions import ApiVersionsResponse
from headpond.protocol.schema.create_topics import CreateTopicsResponse
from headpond.protocol.schema.fetch import FetchResponse
from headpond.protocol.schema.init_producer_id import InitProducerIdResponse
from headpond.protocol.schema.list_offsets import ListOffsetsResponse
from headpond.protocol.schema.metadata import MetadataResponse
from headpond.protocol.schema.produce import ProduceResponse
from headpond.runtime.tasks import LoopTasks
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import ManualClock
from simulation.harness.turns import settle
from support.other_side import encode_response_header, stamp

T = TypeVar("T")
SWALLOW = "swallow"  # carry the request out and never answer
DROP_BEFORE = "drop before"  # end the connection, the request not carried out
DROP_AFTER = "drop after"  # carry it out, then end the connection
Fault = str | int | None
TURNS_MAX = 100_000

UNKNOWN_TOPIC, NOT_LEADER, OUT_OF_RANGE, OUT_OF_ORDER, OLD_EPOCH, FENCED_EPOCH = 3, 6, 1, 45, 47, 74


class Log:
    """One partition: its batches, and what each producer last wrote."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.leader_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.stable_offset: int | None = None
        self.batches: list[bytes] = []
        self.aborted: list[tuple[int, int]] = []
        self._producers: dict[int, tuple[int, list[tuple[int, int, int]]]] = {}

    def append(self, data: Any) -> tuple[int, int]:
        """(error code, base offset)"""
        header = read_header(data)
        if header.has_producer_id:
            epoch, recent = self._producers.get(header.producer_id, (header.producer_epoch, []))
            if header.producer_epoch < epoch:
                return OLD_EPOCH, -1
            if header.producer_epoch > epoch:
                recent = []
                if header.base_sequence != 0:
                    return OUT_OF_ORDER, -1
            for base, last, offset in recent:
                if (base, last) == (header.base_sequence, header.last_sequence):
                    return 0, offset
            if recent and header.base_sequence != (recent[-1][1] + 1) & 0x7FFFFFFF:
                return OUT_OF_ORDER, -1
            kept = [*recent, (header.base_sequence, header.last_sequence, self.end_offset)][-5:]
            self._producers[header.producer_id] = (header.producer_epoch, kept)
        batch = bytearray(data)
        stamp(batch, 0, self.end_offset, self.leader_epoch)
        self.batches.append(bytes(batch))
        base_offset, self.end_offset = self.end_offset, self.end_offset + header.last_offset_delta + 1
        return 0, base_offset

    def read(self, offset: int, size_bytes: int) -> bytes:
        found = b""
        for batch in self.batches:
            if read_header(batch).last_offset >= offset and (not found or len(found) + len(batch) <= size_bytes):
                found += batch
        return found


class MemoryCluster:
    def __init__(self, nodes: int = 1, *, versions: dict[int, tuple[int, int]] | None = None) -> None:
        self.clock = ManualClock()
        self.random = SeededRandom()
        self.tasks = LoopTasks()
        self.nodes = list(range(1, nodes + 1))
        self.down: set[int] = set()
        self.topics: dict[str, list[Log]] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.faults: Callable[[int, Any], Fault] = lambda node, request: None
        self.requests: list[tuple[int, Any, int]] = []  # (node, message, version)
        self.connections: list[ServerSide] = []
        self.versions = versions or {}
        self.raw_answer: bytes | None = None
        self._producer_ids = 1_000

    def client(self, **options: Any) -> Client:
        options = {"timeout_s": 5.0, **options}
        return Client(
            [("b", node) for node in self.nodes],
            network=self,  # type: ignore[arg-type]
            clock=self.clock,
            tasks=self.tasks,
            random=self.random,
            **options,
        )

    def run(self, scenario: Callable[[Client], Coroutine[Any, Any, T]], **options: Any) -> T:
        """Run ``scenario(client)`` to its end; nothing may be left running."""

        async def body() -> T:
            async with self.client(**options) as client:
                return await scenario(client)

        async def main() -> T:
            task = asyncio.ensure_future(body())
            await self._run_until(task)
            result = task.result()
            await settle(5)
            assert len(self.tasks) == 0, "tasks were left running"
            return result

        return asyncio.run(main())

    async def _run_until(self, task: asyncio.Future[Any]) -> None:
        """Time moves when nobody is ready to do anything, and then only to the next timer."""
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
        for _ in range(TURNS_MAX):
            await asyncio.sleep(0)
            if task.done():
                return
            if not ready:
                delay_s = self.clock.next_timer_s()
                assert delay_s is not None, "nothing is ready and no timer is set: this would wait forever"
                self.clock.advance(delay_s)
        raise AssertionError("this does not end")

    def add_topic(self, name: str, partitions: int = 1) -> list[Log]:
        logs = [Log(self.nodes[index % len(self.nodes)]) for index in range(partitions)]
        self.topics[name] = logs
        self.topic_ids[name] = self.random.random_bytes(16)
        return logs

    def move_leader(self, log: Log, node: int) -> None:
        log.leader = node
        log.leader_epoch += 1

    def stop(self, node: int) -> None:
        self.down.add(node)
        for connection in [one for one in self.connections if one.node == node]:
            connection.drop()

    def asked(self, name: str) -> list[Any]:
        return [message for _, message, _ in self.requests if type(message).__name__ == name + "Request"]

    # ---- ports.Network

    async def connect(
        self, host: str, port: int, factory: Callable[[], Any], *, tls: Tls | None = None
    ) -> tuple[Any, Any]:
        assert tls is None, "nobody listens to what is said in here"
        await asyncio.sleep(0)
        if port in self.down or port not in self.nodes:
            raise ConnectionRefusedError(111, "refused")
        protocol = factory()
        connection = ServerSide(self, port, protocol)
        self.connections.append(connection)
        protocol.connection_made(connection)
        return connection, protocol  # type: ignore[return-value]

    def buffer(self, size_bytes: int) -> bytearray:
        return bytearray(size_bytes)

    # ---- the brokers

    def answer(self, node: int, key: int, version: int, request: Any) -> Any:
        return getattr(self, "_" + type(request).__name__.removesuffix("Request").lower())(node, request, version)

    def _apiversions(self, node: int, request: Any, version: int) -> ApiVersionsResponse:
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, api in APIS.items()
            for low, high in [self.versions.get(key, (api.min_version, api.max_version))]
            if high >= 0
        ]
        return ApiVersionsResponse(api_keys=keys)

    def _metadata(self, node: int, request: Any, version: int) -> MetadataResponse:
        names = list(self.topics) if request.topics is None else [one.name for one in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=one, host="b", port=one) for one in self.nodes],
            cluster_id="memory",
            controller_id=self.nodes[0],
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> Any:
        if name not in self.topics:
            return MetadataResponse.MetadataResponseTopic(name=name, error_code=UNKNOWN_TOPIC)
        partitions = [
            MetadataResponse.MetadataResponsePartition(
                partition_index=index, leader_id=log.leader, leader_epoch=log.leader_epoch, replica_nodes=self.nodes
            )
            for index, log in enumerate(self.topics[name])
        ]
        return MetadataResponse.MetadataResponseTopic(name=name, topic_id=self.topic_ids[name], partitions=partitions)

    def _initproducerid(self, node: int, request: Any, version: int) -> InitProducerIdResponse:
        self._producer_ids += 1
        return InitProducerIdResponse(producer_id=self._producer_ids, producer_epoch=0)

    def _createtopics(self, node: int, request: Any, version: int) -> CreateTopicsResponse:
        for topic in request.topics:
            self.add_topic(topic.name, topic.num_partitions)
        return CreateTopicsResponse(
            topics=[CreateTopicsResponse.CreatableTopicResult(name=topic.name) for topic in request.topics]
        )

    def _log(self, node: int, name: str, topic_id: bytes, index: int, epoch: int = -1) -> tuple[int, Log | None]:
        if not name:
            name = next((one for one, its_id in self.topic_ids.items() if its_id == topic_id), "")
        logs = self.topics.get(name)
        if logs is None or index >= len(logs):
            return UNKNOWN_TOPIC, None
        if logs[index].leader != node:
            return NOT_LEADER, None
        if epoch >= 0 and epoch != logs[index].leader_epoch:
            return FENCED_EPOCH, None
        return 0, logs[index]

    def _produce(self, node: int, request: Any, version: int) -> ProduceResponse:
        answers = []
        for topic in request.topic_data:
            rows = []
            for one in topic.partition_data:
                code, log = self._log(node, topic.name, topic.topic_id, one.index)
                code, offset = log.append(one.records) if log is not None else (code, -1)
                row = ProduceResponse.PartitionProduceResponse(index=one.index, error_code=code, base_offset=offset)
                rows.append(row)
            answers.append(
                ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows)
            )
        return ProduceResponse(responses=answers)

    def _listoffsets(self, node: int, request: Any, version: int) -> ListOffsetsResponse:
        answers = []
        for topic in request.topics:
            rows = []
            for one in topic.partitions:
                code, log = self._log(node, topic.name, b"", one.partition_index, one.current_leader_epoch)
                offset = -1
                if log is not None:
                    end = log.end_offset
                    if request.isolation_level == 1 and log.stable_offset is not None:
                        end = log.stable_offset
                    offset = end if one.timestamp == -1 else log.start_offset
                rows.append(
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=one.partition_index, error_code=code, offset=offset
                    )
                )
            answers.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=rows))
        return ListOffsetsResponse(topics=answers)

    def _fetch(self, node: int, request: Any, version: int) -> FetchResponse:
        answers = []
        left_bytes = request.max_bytes
        for topic in request.topics:
            rows = []
            for one in topic.partitions:
                code, log = self._log(node, topic.topic, topic.topic_id, one.partition, one.current_leader_epoch)
                row = FetchResponse.PartitionData(partition_index=one.partition, error_code=code, records=b"")
                if log is not None and not log.start_offset <= one.fetch_offset <= log.end_offset:
                    row.error_code = OUT_OF_RANGE
                    row.log_start_offset = log.start_offset
                elif log is not None:
                    row.high_watermark = log.end_offset
                    if left_bytes > 0:
                        row.records = log.read(one.fetch_offset, min(left_bytes, one.partition_max_bytes))
                    left_bytes -= len(row.records)
                    row.aborted_transactions = [
                        FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=first)
                        for producer_id, first in log.aborted
                    ]
                rows.append(row)
            answers.append(
                FetchResponse.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=rows)
            )
        return FetchResponse(responses=answers)


class ServerSide(asyncio.Transport):
    """A connection as the broker sees it, and the client's transport."""

    def __init__(self, cluster: MemoryCluster, node: int, protocol: Any) -> None:
        super().__init__()
        self.cluster, self.node, self.protocol = cluster, node, protocol
        self.is_open = True
        self.held: list[bytes] | None = None
        self._received = bytearray()

    def write(self, data: Any) -> None:
        if self.is_open:
            asyncio.get_running_loop().call_soon(self._receive, bytes(data))

    def abort(self) -> None:
        self.drop()

    def drop(self) -> None:
        if self.is_open:
            self.is_open = False
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def hold(self) -> None:
        """Keep answers back from now on."""
        self.held = []

    def _receive(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4 and self.is_open:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            frame = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            self._serve(frame)

    def _serve(self, frame: bytes) -> None:
        header, position = decode_request_header(frame)
        cluster, key, version = self.cluster, header.api_key, header.api_version
        api = APIS[key]
        request, _ = decoder(api.request, version)(frame, position)
        cluster.requests.append((self.node, request, version))
        if cluster.raw_answer is not None:
            self._send(cluster.raw_answer)
            return
        low, high = cluster.versions.get(key, (api.min_version, api.max_version))
        if key == 18 and not low <= version <= high:
            only = ApiVersionsResponse.ApiVersion(api_key=18, min_version=low, max_version=high)
            body = encoder(ApiVersionsResponse, 0)(ApiVersionsResponse(error_code=35, api_keys=[only]))
            self._answer(struct.pack(">i", header.correlation_id) + body)
            return
        assert low <= version <= high, f"{api.name} v{version} was asked of a broker that speaks {low}-{high}"
        fault = None if key == 18 else cluster.faults(self.node, request)
        if fault == DROP_BEFORE:
            self.drop()
            return
        response = (
            with_error(request, fault) if isinstance(fault, int) else cluster.answer(self.node, key, version, request)
        )
        if fault == DROP_AFTER:
            self.drop()
        elif fault == SWALLOW or (key == 0 and request.acks == 0):
            return
        elif key == 1 and request.max_wait_ms and has_nothing(response):
            # As a broker parks a fetch, but for its whole time: what comes meanwhile is seen by the next.
            later = partial(self._respond, header, response)
            cluster.clock.call_later(request.max_wait_ms / 1_000, later)
        else:
            self._respond(header, response)

    def _respond(self, header: RequestHeader, response: Any) -> None:
        key, version = header.api_key, header.api_version
        body = encoder(type(response), version)(response)
        self._answer(encode_response_header(key, version, header.correlation_id) + body)

    def _answer(self, frame: bytes) -> None:
        self._send(struct.pack(">i", len(frame)) + frame)

    def _send(self, data: bytes) -> None:
        if self.held is not None:
            self.held.append(data)
        else:
            asyncio.get_running_loop().call_soon(self.deliver, data)

    def deliver(self, data: bytes) -> None:
        """Hand bytes to the client, in pieces as small as its buffer."""
        while data and self.is_open:
            buffer = self.protocol.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.protocol.buffer_updated(count)
            data = data[count:]


def has_nothing(response: FetchResponse) -> bool:
    return not any(one.records or one.error_code for topic in response.responses for one in topic.partitions)


def with_error(request: Any, code: int) -> Any:
    """A Produce or Fetch response in which every partition has this error."""
    if type(request).__name__ == "ProduceRequest":
        return ProduceResponse(
            responses=[
                ProduceResponse.TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        ProduceResponse.PartitionProduceResponse(index=one.index, error_code=code, base_offset=-1)
                        for one in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )
    if type(request).__name__ == "InitProducerIdRequest":
        return InitProducerIdResponse(error_code=code)
    return FetchResponse(
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    FetchResponse.PartitionData(partition_index=one.partition, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
