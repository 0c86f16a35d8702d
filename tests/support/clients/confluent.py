"""confluent-kafka, which is librdkafka: the client behind most languages but Java, Go and JS."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from support.clients.base import EARLIEST, TIMEOUT_S, Received, Refused, Sent

_SPECIAL = {EARLIEST: OFFSET_BEGINNING, "latest": OFFSET_END}


def _refused(error: Any) -> Refused:
    return Refused(error.code(), error.str())


class ConfluentClient:
    name = "confluent"

    def __init__(self, bootstrap: str, **options: Any) -> None:
        self.config = {"bootstrap.servers": bootstrap, **options}

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
        config = {"acks": acks, "compression.type": codec, "linger.ms": 50, **self.config, **(options or {})}
        producer = Producer(config)
        offsets = [-1] * len(records)
        errors: list[Any] = []
        for index, record in enumerate(records):

            def delivered(error: Any, message: Any, index: int = index) -> None:
                if error is not None:
                    errors.append(error)
                elif message.offset() is not None:
                    offsets[index] = message.offset()

            fields: dict[str, Any] = {}
            if record.timestamp_ms is not None:
                fields["timestamp"] = record.timestamp_ms
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=partition,
                on_delivery=delivered,
                **fields,
            )
        left = producer.flush(TIMEOUT_S)
        assert left == 0, f"{left} records are still on their way"
        if errors:
            raise _refused(errors[0])
        return [-1 if acks == 0 else offset for offset in offsets]

    def consumer(self, **options: Any) -> Consumer:
        return Consumer({"group.id": "unused", "enable.auto.commit": False, **self.config, **options})

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partitions: Sequence[int] = (0,),
        start: int | str = EARLIEST,
        options: dict[str, Any] | None = None,
    ) -> list[Received]:
        consumer = self.consumer(**(options or {}))
        found: list[Received] = []
        until = time.monotonic() + TIMEOUT_S
        try:
            offset = _SPECIAL[start] if isinstance(start, str) else start
            consumer.assign([TopicPartition(topic, partition, offset) for partition in partitions])
            while len(found) < count:
                assert time.monotonic() < until, f"{len(found)} of {count} records in time"
                for message in consumer.consume(count - len(found), 0.5):
                    if message.error():
                        raise _refused(message.error())
                    found.append(
                        Received(
                            message.partition(),
                            message.offset(),
                            message.key(),
                            message.value(),
                            list(message.headers() or []),
                            message.timestamp()[1],
                        )
                    )
        finally:
            consumer.close()
        return found

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        consumer = self.consumer()
        try:
            (found,) = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp_ms)], TIMEOUT_S)
        finally:
            consumer.close()
        return None if found.offset == OFFSET_END else int(found.offset)

    def bounds(self, topic: str, *, partition: int = 0) -> tuple[int, int]:
        consumer = self.consumer()
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
        finally:
            consumer.close()
        return low, high


class ConfluentAdmin:
    name = "confluent"

    def __init__(self, bootstrap: str) -> None:
        self.client = AdminClient({"bootstrap.servers": bootstrap})

    def _wait(self, futures: dict[Any, Any]) -> Any:
        (future,) = futures.values()
        try:
            return future.result(TIMEOUT_S)
        except KafkaException as error:
            raise _refused(error.args[0]) from error

    def create_topic(self, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        self._wait(self.client.create_topics([NewTopic(name, partitions, 1, config=configs or {})]))

    def delete_topic(self, name: str) -> None:
        self._wait(self.client.delete_topics([name]))

    def add_partitions(self, name: str, total: int) -> None:
        self._wait(self.client.create_partitions([NewPartitions(name, total)]))

    def topics(self) -> dict[str, int]:
        found = self.client.list_topics(timeout=TIMEOUT_S).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def topic_config(self, name: str) -> dict[str, str | None]:
        entries = self._wait(self.client.describe_configs([ConfigResource(ResourceType.TOPIC, name)]))
        return {key: entry.value for key, entry in entries.items()}

    def set_topic_config(self, name: str, key: str, value: str) -> None:
        change = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change])
        self._wait(self.client.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        self._wait(self.client.delete_records([TopicPartition(topic, partition, before_offset)]))

    def brokers(self) -> list[tuple[int, str, int]]:
        cluster = self.client.describe_cluster(request_timeout=TIMEOUT_S).result(TIMEOUT_S)
        return [(node.id, node.host, node.port) for node in cluster.nodes]
