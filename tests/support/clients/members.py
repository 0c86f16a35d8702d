"""Members of a consumer group, one class per library, under one set of names. They commit only when told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, NamedTuple, Protocol

from support.clients.base import TIMEOUT_S

KINDS = ("confluent-range", "confluent-cooperative", "confluent-consumer", "kafka-python", "aiokafka")


class Read(NamedTuple):
    partition: int
    offset: int
    value: bytes


class Member(Protocol):
    def poll(self) -> list[Read]:
        """What came within a moment. Rebalances go on only while somebody polls."""

    def assignment(self) -> set[int]:
        """The partitions that it holds."""

    def commit(self) -> None:
        """Everything that ``poll`` gave out; returns when the broker has it."""

    def close(self) -> None:
        """Leaves the group."""

    def abandon(self) -> None:
        """Ends without leaving; for a broker that is not there any more."""


SESSION_MS = 10_000


def make_member(
    kind: str, bootstrap: str, group: str, topic: str, *, instance_id: str | None = None, session_ms: int = SESSION_MS
) -> Member:
    """``session_ms``: of the classic protocol; in the new one it is the broker's."""
    if kind == "kafka-python":
        return KafkaPythonMember(bootstrap, group, topic, instance_id, session_ms)
    if kind == "aiokafka":
        return AioMember(bootstrap, group, topic, instance_id, session_ms)
    options: dict[str, Any] = {
        "confluent-range": {"partition.assignment.strategy": "range"},
        "confluent-cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
        "confluent-consumer": {"group.protocol": "consumer"},
    }[kind]
    if "group.protocol" not in options:
        options |= {"session.timeout.ms": session_ms, "heartbeat.interval.ms": 500}
    if instance_id is not None:
        options["group.instance.id"] = instance_id
    return ConfluentMember(bootstrap, group, topic, options)


class ConfluentMember:
    def __init__(self, bootstrap: str, group: str, topic: str, options: dict[str, Any]) -> None:
        from confluent_kafka import Consumer

        config = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 1_000,
            "reconnect.backoff.max.ms": 500,
            **options,
        }
        self._consumer = Consumer(config)
        self._consumer.subscribe([topic])

    def poll(self) -> list[Read]:
        messages = self._consumer.consume(500, 0.2)
        return [Read(each.partition(), each.offset(), each.value()) for each in messages if not each.error()]

    def assignment(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()

    def abandon(self) -> None:
        del self._consumer


class KafkaPythonMember:
    def __init__(self, bootstrap: str, group: str, topic: str, instance_id: str | None, session_ms: int) -> None:
        from kafka import KafkaConsumer

        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=500,
            group_instance_id=instance_id,
            reconnect_backoff_max_ms=500,
        )
        # Where the broker lets nobody wait it may join before it has heard of the topic, and assign nothing; mostly it
        # notices, rarely not.
        self._consumer.partitions_for_topic(topic)

    def poll(self) -> list[Read]:
        batches = self._consumer.poll(timeout_ms=200)
        return [Read(each.partition, each.offset, each.value) for batch in batches.values() for each in batch]

    def assignment(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()

    def abandon(self) -> None:
        self._consumer.close(autocommit=False, timeout_ms=0)


class AioMember:
    """Its loop runs in a thread of its own: heartbeats must go on while the test does something else."""

    def __init__(self, bootstrap: str, group: str, topic: str, instance_id: str | None, session_ms: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._consumer = self._do(self._start(bootstrap, group, topic, instance_id, session_ms))

    async def _start(self, bootstrap: str, group: str, topic: str, instance_id: str | None, session_ms: int) -> Any:
        from aiokafka import AIOKafkaConsumer

        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=500,
            group_instance_id=instance_id,
        )
        await consumer.start()
        return consumer

    def poll(self) -> list[Read]:
        batches = self._do(self._consumer.getmany(timeout_ms=200))
        return [Read(each.partition, each.offset, each.value) for batch in batches.values() for each in batch]

    def assignment(self) -> set[int]:
        async def held() -> set[int]:
            return {each.partition for each in self._consumer.assignment()}

        return self._do(held())

    def commit(self) -> None:
        self._do(self._consumer.commit())

    def close(self) -> None:
        self._do(self._consumer.stop())
        self.abandon()

    def abandon(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)

    def _do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(2 * TIMEOUT_S)
