"""Records in and out of a broker under test, with the internal client: a test needs no client library for its data.

Each call runs in a thread of its own with an event loop of its own, so that it works with and without a running loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from headpond.client import Client, ClientError
from headpond.client.consumer import EARLIEST, Reader
from headpond.client.producer import Producer
from headpond.client.producer import Record as Outgoing
from headpond.model import ErrorCode, TopicPartition
from headpond.runtime.clock import SystemClock
from headpond.runtime.network import TcpNetwork
from headpond.runtime.process import loop_factory
from headpond.runtime.random import SystemRandom
from headpond.runtime.tasks import LoopTasks
from headpond.testing.errors import BrokerFailed

LOOK_AGAIN_S = 0.02

Text = str | bytes | None
Headers = Mapping[str, Text] | Iterable[tuple[str, Text]]
T = TypeVar("T")


class Record(NamedTuple):
    """A record as a test writes it and as it reads it. Text is sent as UTF-8; what is read is bytes."""

    value: Text = None
    key: Text = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    """None: the time at which it is sent."""
    partition: int | None = None
    """None: by the key's hash, or any."""
    offset: int | None = None
    """Where it is in its partition; not asked for when it is written."""
    topic: str | None = None


Sendable = Record | str | bytes | tuple[Text, Text]
"""A whole record, a value, or key and value."""


def produce(address: tuple[str, int], topic: str, records: Iterable[Sendable], timeout_s: float) -> list[Record]:
    """The records as they are in the topic now. Raises ``BrokerFailed``; what came before may be there then."""
    wanted = [_whole(record) for record in records]

    async def run(client: Client) -> list[Record]:
        async with Producer(client, delivery_timeout_s=timeout_s, auto_create_topics=True) as producer:
            deliveries = [
                await producer.send(
                    topic,
                    record.partition,
                    Outgoing(_data(record.key), _data(record.value), _headers(record.headers), record.timestamp_ms),
                )
                for record in wanted
            ]
            await producer.flush()
            places = [await delivery for delivery in deliveries]
        return [
            record._replace(
                value=_data(record.value),
                key=_data(record.key),
                headers=_headers(record.headers),
                partition=place.partition,
                offset=place.offset,
                topic=topic,
            )
            for record, place in zip(wanted, places, strict=True)
        ]

    return _with_client(address, run, timeout_s, f"records were not written to topic {topic!r}")


def consume(
    address: tuple[str, int],
    topic: str,
    *,
    partition: int | None,
    from_offset: int,
    at_least: int,
    uncommitted: bool,
    timeout_s: float,
) -> list[Record]:
    """What is there, by partition and offset; with ``at_least`` not before there are so many."""

    async def run(client: Client) -> list[Record]:
        until_s = client.clock.monotonic() + timeout_s
        positions: dict[TopicPartition, int] = {}
        found: list[Record] = []
        while True:
            view = (await client.metadata([topic])).topics.get(topic)
            if view is not None and view.error is ErrorCode.NONE:
                for each in view.partitions:
                    if partition in (None, each.index):
                        positions.setdefault(TopicPartition(topic, each.index), from_offset)
            elif not at_least:
                raise BrokerFailed(f"nothing was read from topic {topic!r}: it does not exist")
            if positions:
                await _read_on(client, positions, found, uncommitted)
            elif view is not None and view.error is ErrorCode.NONE:
                raise BrokerFailed(f"topic {topic!r} has no partition {partition}")
            if len(found) >= at_least:
                return sorted(found, key=lambda record: (record.partition, record.offset))
            if client.clock.monotonic() >= until_s:
                raise BrokerFailed(
                    f"{len(found)} of {at_least} records came within {timeout_s:g} s from topic {topic!r}: "
                    f"{[record.value for record in found[:10]]}"
                )
            await client.clock.sleep(LOOK_AGAIN_S)

    return _with_client(address, run, timeout_s, f"topic {topic!r} was not read")


async def _read_on(
    client: Client, positions: dict[TopicPartition, int], found: list[Record], uncommitted: bool
) -> None:
    """To where the partitions end now."""
    isolation: Any = "read_uncommitted" if uncommitted else "read_committed"
    async with Reader(client, positions, isolation=isolation, offset_reset="earliest") as reader:
        async for batch in reader:
            found.extend(
                Record(one.value, one.key, one.headers, one.timestamp_ms, one.tp.partition, one.offset, one.tp.topic)
                for one in batch.records
            )
        positions.update({tp: reader.position(tp) for tp in positions})


def _whole(record: Sendable) -> Record:
    if isinstance(record, Record):
        return record
    if isinstance(record, str | bytes):
        return Record(record)
    key, value = record
    return Record(value, key)


def _data(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _headers(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name, _data(value)) for name, value in pairs)


def _with_client(
    address: tuple[str, int], run: Callable[[Client], Coroutine[Any, Any, T]], timeout_s: float, failure: str
) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    async def main() -> T:
        tasks = LoopTasks()
        client = Client(
            [address],
            network=TcpNetwork(),
            clock=SystemClock(),
            tasks=tasks,
            random=SystemRandom(),
            client_id="headpond-testing",
            timeout_s=timeout_s,
        )
        try:
            async with client:
                return await run(client)
        finally:
            await tasks.cancel_all()

    def in_thread() -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                results.append(runner.run(main()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=in_thread, name="headpond-testing", daemon=True)
    thread.start()
    thread.join()
    if not errors:
        return results[0]
    if isinstance(errors[0], ClientError):
        raise BrokerFailed(f"{failure}: {errors[0]}") from errors[0]
    raise errors[0]


__all__ = ["EARLIEST", "Record", "Sendable", "consume", "produce"]
