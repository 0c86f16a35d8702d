"""aiokafka: asyncio, its own record builder in C, older non-flexible protocol versions.

Each call runs its own event loop: the adapter is synchronous like the others, so that one test serves them all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from support.clients.base import EARLIEST, TIMEOUT_S, Received, Refused, Sent


def _refused(error: KafkaError) -> Refused:
    return Refused(getattr(error, "errno", None) or 0, str(error))


class AioClient:
    name = "aiokafka"

    def __init__(self, bootstrap: str, **options: Any) -> None:
        self.config = {"bootstrap_servers": bootstrap, **options}

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
        config = {
            "acks": "all" if acks == -1 else acks,
            "compression_type": None if codec == "none" else codec,
            "linger_ms": 50,
            **self.config,
            **(options or {}),
        }

        async def run() -> list[int]:
            async with AIOKafkaProducer(**config) as producer:
                futures = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                await producer.flush()
                done = await asyncio.wait_for(asyncio.gather(*futures), TIMEOUT_S)
                return [-1 if acks == 0 else metadata.offset for metadata in done]

        try:
            return asyncio.run(run())
        except KafkaError as error:
            raise _refused(error) from error

    def _with_consumer(
        self, act: Callable[[AIOKafkaConsumer], Coroutine[Any, Any, Any]], options: dict[str, Any] | None = None
    ) -> Any:
        config = {"group_id": None, "enable_auto_commit": False, **self.config, **(options or {})}

        async def run() -> Any:
            consumer = AIOKafkaConsumer(**config)
            await consumer.start()
            try:
                return await act(consumer)
            finally:
                await consumer.stop()

        try:
            return asyncio.run(run())
        except KafkaError as error:
            raise _refused(error) from error

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partitions: Sequence[int] = (0,),
        start: int | str = EARLIEST,
        options: dict[str, Any] | None = None,
    ) -> list[Received]:
        assigned = [TopicPartition(topic, partition) for partition in partitions]

        async def act(consumer: AIOKafkaConsumer) -> list[Received]:
            found: list[Received] = []
            until = time.monotonic() + TIMEOUT_S
            consumer.assign(assigned)
            if start == EARLIEST:
                await consumer.seek_to_beginning(*assigned)
            elif start == "latest":
                await consumer.seek_to_end(*assigned)
            else:
                for partition in assigned:
                    consumer.seek(partition, int(start))
            while len(found) < count:
                assert time.monotonic() < until, f"{len(found)} of {count} records in time"
                got = await consumer.getmany(timeout_ms=500, max_records=count - len(found))
                for rows in got.values():
                    found += [
                        Received(r.partition, r.offset, r.key, r.value, list(r.headers), r.timestamp) for r in rows
                    ]
            return found

        found: list[Received] = self._with_consumer(act, options)
        return found

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        asked = TopicPartition(topic, partition)

        async def act(consumer: AIOKafkaConsumer) -> int | None:
            found = (await consumer.offsets_for_times({asked: timestamp_ms}))[asked]
            return None if found is None else int(found.offset)

        offset: int | None = self._with_consumer(act)
        return offset

    def bounds(self, topic: str, *, partition: int = 0) -> tuple[int, int]:
        asked = TopicPartition(topic, partition)

        async def act(consumer: AIOKafkaConsumer) -> tuple[int, int]:
            return (await consumer.beginning_offsets([asked]))[asked], (await consumer.end_offsets([asked]))[asked]

        bounds: tuple[int, int] = self._with_consumer(act)
        return bounds


class AioAdmin:
    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def _call(self, verb: str, *arguments: Any) -> Any:
        async def run() -> Any:
            client = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await client.start()
            try:
                return await getattr(client, verb)(*arguments)
            finally:
                await client.close()

        try:
            return asyncio.run(run())
        except KafkaError as error:
            raise _refused(error) from error

    def _check(self, code: int, message: str | None = None) -> None:
        """aiokafka hands most error codes back inside the response instead of raising them."""
        if code:
            raise Refused(code, message or "")

    def create_topic(self, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        (row,) = self._call("create_topics", [NewTopic(name, partitions, 1, topic_configs=configs or {})]).topic_errors
        self._check(row[1], row[2])

    def delete_topic(self, name: str) -> None:
        (row,) = self._call("delete_topics", [name]).topic_error_codes
        self._check(row[1])

    def add_partitions(self, name: str, total: int) -> None:
        (row,) = self._call("create_partitions", {name: NewPartitions(total)}).topic_errors
        self._check(row[1], row[2])

    def topics(self) -> dict[str, int]:
        return {topic["topic"]: len(topic["partitions"]) for topic in self._call("describe_topics")}

    def topic_config(self, name: str) -> dict[str, str | None]:
        (response,) = self._call("describe_configs", [ConfigResource(ConfigResourceType.TOPIC, name)])
        (row,) = response.resources
        self._check(row[0], row[1])
        return {entry[0]: entry[1] for entry in row[4]}

    def set_topic_config(self, name: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, name, configs={key: value})
        (response,) = self._call("alter_configs", [resource])
        (row,) = response.resources
        self._check(row[0], row[1])

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        self._call("delete_records", {TopicPartition(topic, partition): RecordsToDelete(before_offset)})

    def brokers(self) -> list[tuple[int, str, int]]:
        nodes = self._call("describe_cluster")["brokers"]
        return [(node["node_id"], node["host"], node["port"]) for node in nodes]
