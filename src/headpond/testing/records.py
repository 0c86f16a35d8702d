"""Records in and out of a broker under test, with the internal client: a test needs no client library for its data.

Each call runs in a thread of its own with an event loop of its own, so that it works with and without a running loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

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
from headpond.testing.sendable import Sendable, StoredRecord, whole

__tracebackhide__ = True  # a failure points at the line of the test
LOOK_AGAIN_S = 0.02

T = TypeVar("T")


def produce(address: tuple[str, int], topic: str, records: Iterable[Sendable], timeout_s: float) -> list[StoredRecord]:
    """The records as they are in the topic now. Raises ``BrokerFailed``; some of them may be there then."""
    wanted = whole(records)

    async def run(client: Client) -> list[StoredRecord]:
        async with Producer(client, delivery_timeout_s=timeout_s, auto_create_topics=True) as producer:
            deliveries = [
                await producer.send(
                    topic,
                    record.partition,
                    Outgoing(record.key, record.value, record.headers, record.timestamp_ms),
                )
                for record in wanted
            ]
            await producer.flush()
            places = [await delivery for delivery in deliveries]
        return [
            StoredRecord(
                record.value, record.key, record.headers, record.timestamp_ms, place.partition, place.offset, topic
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
) -> list[StoredRecord]:
    """What is there, by partition and offset; with ``at_least`` not before there are so many."""

    async def run(client: Client) -> list[StoredRecord]:
        until_s = client.clock.monotonic() + timeout_s
        positions: dict[TopicPartition, int] = {}
        found: list[StoredRecord] = []
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


def topics(address: tuple[str, int], timeout_s: float) -> dict[str, int]:
    """By name, how many partitions each has; without the broker's own."""

    async def run(client: Client) -> dict[str, int]:
        found = (await client.metadata()).topics
        return {name: len(found[name].partitions) for name in sorted(found) if not found[name].is_internal}

    return _with_client(address, run, timeout_s, "the topics were not listed")


async def _read_on(
    client: Client, positions: dict[TopicPartition, int], found: list[StoredRecord], uncommitted: bool
) -> None:
    """To where the partitions end now."""
    isolation: Any = "read_uncommitted" if uncommitted else "read_committed"
    async with Reader(client, positions, isolation=isolation, offset_reset="earliest") as reader:
        async for batch in reader:
            found.extend(
                StoredRecord(
                    one.value, one.key, one.headers, one.timestamp_ms, one.tp.partition, one.offset, one.tp.topic
                )
                for one in batch.records
            )
        positions.update({tp: reader.position(tp) for tp in positions})


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
    # In a failure that has a sentence, the way to it through this thread's loop would hide the test's own line.
    if isinstance(errors[0], ClientError):
        raise BrokerFailed(f"{failure}: {errors[0]}") from None
    if isinstance(errors[0], BrokerFailed):
        raise errors[0].with_traceback(None)
    raise errors[0]


__all__ = ["EARLIEST", "Sendable", "StoredRecord", "consume", "produce", "topics"]
