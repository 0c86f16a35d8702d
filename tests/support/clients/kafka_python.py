"""kafka-python: pure Python, idempotent by default, with fetch sessions."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import BrokerResponseError, KafkaError

from support.clients.base import EARLIEST, TIMEOUT_S, Received, Refused, Sent


def _refused(error: BaseException) -> Refused:
    return Refused(getattr(error, "errno", None) or 0, str(error))


class KafkaPythonClient:
    name = "kafka-python"

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
            "acks": acks,
            "compression_type": None if codec == "none" else codec,
            "linger_ms": 50,
            "enable_idempotence": acks == -1,
            **self.config,
            **(options or {}),
        }
        producer = KafkaProducer(**config)
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(TIMEOUT_S)
            offsets = [future.get(TIMEOUT_S).offset for future in futures]
        except KafkaError as error:
            raise _refused(error) from error
        finally:
            producer.close(TIMEOUT_S)
        return [-1 if acks == 0 else offset for offset in offsets]

    def consumer(self, **options: Any) -> KafkaConsumer:
        return KafkaConsumer(**{"group_id": None, "enable_auto_commit": False, **self.config, **options})

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
        assigned = [TopicPartition(topic, partition) for partition in partitions]
        found: list[Received] = []
        until = time.monotonic() + TIMEOUT_S
        try:
            consumer.assign(assigned)
            if start == EARLIEST:
                consumer.seek_to_beginning(*assigned)
            elif start == "latest":
                consumer.seek_to_end(*assigned)
            else:
                for partition in assigned:
                    consumer.seek(partition, start)
            while len(found) < count:
                assert time.monotonic() < until, f"{len(found)} of {count} records in time"
                for rows in consumer.poll(500, max_records=count - len(found)).values():
                    found += [
                        Received(r.partition, r.offset, r.key, r.value, [tuple(h) for h in r.headers], r.timestamp)
                        for r in rows
                    ]
        except KafkaError as error:
            raise _refused(error) from error
        finally:
            consumer.close()
        return found

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        consumer = self.consumer()
        asked = TopicPartition(topic, partition)
        try:
            found = consumer.offsets_for_times({asked: timestamp_ms})[asked]
        finally:
            consumer.close()
        return None if found is None else int(found.offset)

    def bounds(self, topic: str, *, partition: int = 0) -> tuple[int, int]:
        consumer = self.consumer()
        asked = TopicPartition(topic, partition)
        try:
            return consumer.beginning_offsets([asked])[asked], consumer.end_offsets([asked])[asked]
        finally:
            consumer.close()


class KafkaPythonAdmin:
    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def _call(self, verb: str, *arguments: Any, **named: Any) -> Any:
        client = KafkaAdminClient(bootstrap_servers=self._bootstrap)
        try:
            return getattr(client, verb)(*arguments, **named)
        except BrokerResponseError as error:
            raise _refused(error) from error
        finally:
            client.close()

    def create_topic(self, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        self._call("create_topics", [NewTopic(name, partitions, 1, topic_configs=configs or {})])

    def delete_topic(self, name: str) -> None:
        self._call("delete_topics", [name])

    def add_partitions(self, name: str, total: int) -> None:
        self._call("create_partitions", {name: total})

    def topics(self) -> dict[str, int]:
        return {topic["name"]: len(topic["partitions"]) for topic in self._call("describe_topics")}

    def topic_config(self, name: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        found = self._call("describe_configs", [resource], config_filter="all")["topic"][name]
        return {key: entry["value"] for key, entry in found.items()}

    def set_topic_config(self, name: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, name, configs={key: value})
        said = self._call("alter_configs", [resource], raise_on_unknown=False)["topic"][name]
        if said != "OK":
            found = re.search(r"Error (\d+)", said)
            raise Refused(int(found.group(1)) if found else -1, said)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        self._call("delete_records", {TopicPartition(topic, partition): before_offset})

    def brokers(self) -> list[tuple[int, str, int]]:
        nodes = self._call("describe_cluster")["brokers"]
        return [(node["broker_id"], node["host"], node["port"]) for node in nodes]
