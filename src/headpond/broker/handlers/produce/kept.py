"""What is kept of a Produce until it is answered: its version, its transaction, and how its response is written."""

from __future__ import annotations

from collections.abc import Sequence

from headpond.broker.handlers.produce.wire import ProducePrefix, Result, one_topic_response, response
from headpond.broker.replicas.replicas import Replica
from headpond.model import ErrorCode, invariant
from headpond.ports import Buffer
from headpond.protocol.apis import request_decoder
from headpond.protocol.header import decode_request_header
from headpond.protocol.schema.produce import ProduceRequest

ZSTD_SINCE = 7

Entry = tuple[int, memoryview]
"""A partition's index and its records field, which points into the receive buffer."""
Topic = tuple[dict[int, Replica] | ErrorCode, Sequence[Entry]]


class OneTopic:
    """As nearly all are: read by hand."""

    __slots__ = ("_correlation_id", "_prefix", "version")

    def __init__(self, version: int, correlation_id: int, prefix: ProducePrefix) -> None:
        self.version = version
        self._correlation_id = correlation_id
        self._prefix = prefix

    @property
    def transactional_id(self) -> str | None:
        return self._prefix.transactional_id

    def response(self, results: list[list[Result]]) -> bytes:
        return one_topic_response(self.version, self._correlation_id, self._prefix, results[0])


class AnyTopics:
    """Read by the codec."""

    __slots__ = ("_correlation_id", "_topics", "transactional_id", "version")

    def __init__(
        self, version: int, correlation_id: int, topics: list[tuple[str, bytes]], *, transactional_id: str | None
    ) -> None:
        self.transactional_id = transactional_id
        self.version = version
        self._correlation_id = correlation_id
        self._topics = topics

    def response(self, results: list[list[Result]]) -> bytes:
        # A topic without partitions is not answered for, as in Kafka.
        rows = [(name, topic_id, row) for (name, topic_id), row in zip(self._topics, results, strict=True) if row]
        return response(self.version, self._correlation_id, rows)


Request = OneTopic | AnyTopics


def decode(body: memoryview, start: int, version: int) -> tuple[ProduceRequest, str | None]:
    """A request of any shape, and its client's id. Raises ``MalformedMessage``."""
    header, position = decode_request_header(body, start)
    message: ProduceRequest
    message, _ = request_decoder(0, version)(body, position)
    return message, header.client_id


def entries_of(topic: ProduceRequest.TopicProduceData) -> list[Entry]:
    return [(p.index, _view(p.records)) for p in topic.partition_data]


def _view(records: Buffer | None) -> memoryview:
    """A records field as the codec gives it: null counts as empty, which no batch is."""
    invariant(not isinstance(records, bytes), "a decoded batch must be a view of the receive buffer")
    return memoryview(records if records is not None else b"")
