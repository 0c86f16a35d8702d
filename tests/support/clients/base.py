"""The few things that every Kafka client can do, under one set of names: a test is written once for all of them.

An adapter adds no behaviour of its own: it hands the options to the library and gives back what the library said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

TIMEOUT_S = 30.0

EARLIEST = "earliest"
LATEST = "latest"


class Sent(NamedTuple):
    """A record to produce. A timestamp of None leaves it to the client."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None


class Received(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int


class Refused(Exception):
    """The broker answered with an error code."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(code, message)
        self.code = code


class Client(Protocol):
    """Produces and consumes. ``options`` go to the library unchanged, under the library's own names."""

    name: str

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        partition: int = 0,
        acks: int = -1,
        codec: str = "none",
        options: dict[str, Any] | None = None,
    ) -> list[int]:
        """The offsets that the records got, in order (-1 each with acks=0); ``Refused`` with the broker's error."""

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partitions: Sequence[int] = (0,),
        start: int | str = EARLIEST,
        options: dict[str, Any] | None = None,
    ) -> list[Received]:
        """``count`` records of the assigned partitions, waiting for those that are not there yet."""

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        """The first offset whose timestamp is not earlier; None when there is none."""

    def bounds(self, topic: str, *, partition: int = 0) -> tuple[int, int]:
        """(log start, end) as the client sees them."""


class Admin(Protocol):
    """Manages topics and settings."""

    name: str

    def create_topic(self, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def add_partitions(self, name: str, total: int) -> None: ...

    def topics(self) -> dict[str, int]:
        """Every topic's number of partitions."""

    def topic_config(self, name: str) -> dict[str, str | None]: ...

    def set_topic_config(self, name: str, key: str, value: str) -> None: ...

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None: ...

    def brokers(self) -> list[tuple[int, str, int]]:
        """(id, host, port) of each."""
