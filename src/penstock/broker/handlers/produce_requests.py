"""What is kept of a Produce until it is answered: its version, its transaction, and how its response is written."""

from __future__ import annotations

from penstock.broker.handlers.produce_wire import ProducePrefix, Result, one_topic_response, response


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
