"""Consume, transform, produce, with confluent-kafka: each batch of records and their offsets in one transaction.

As a careful user writes it: records of partitions that are taken away are dropped, an aborted batch is read again, and
what can't be recovered from ends the process, for its supervisor to start another.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from lifeline import Lifeline

BATCH_MAX = 40


class Job:
    def __init__(self, bootstrap: str, source: str, target: str, name: str, consumer_options: dict[str, Any]) -> None:
        self._source, self._target = source, target
        self._batch: list[Message] = []
        # When its only broker is down, librdkafka starts over, and from then on may wait for ever for a coordinator of
        # the group that it has thrown away (its issues 5456 and 5511). Not so if it keeps the brokers that it knows.
        common = {
            "bootstrap.servers": bootstrap,
            "metadata.recovery.strategy": "none",
            "reconnect.backoff.max.ms": 300,
        }
        self._consumer = Consumer(
            {
                **common,
                "group.id": f"{source}-copiers",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                **consumer_options,
            }
        )
        self._producer = Producer(
            {**common, "transactional.id": f"{source}-{name}", "transaction.timeout.ms": 10_000, "linger.ms": 0}
        )

    def run(self, lifeline: Lifeline) -> None:
        self._producer.init_transactions()
        self._consumer.subscribe([self._source], on_revoke=self._dropped, on_lost=self._dropped)
        while not lifeline.is_asked_to_stop:
            self._collect()
            if self._batch:
                self._pass_on()
        self._consumer.close()

    def _collect(self) -> None:
        self._batch = []
        wait_s = 0.1
        while len(self._batch) < BATCH_MAX:
            message = self._consumer.poll(wait_s)
            if message is None:
                return
            if message.error() is None:
                self._batch.append(message)
            wait_s = 0.005

    def _dropped(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        gone = {each.partition for each in partitions}
        self._batch = [each for each in self._batch if each.partition() not in gone]

    def _pass_on(self) -> None:
        ends = {each.partition(): each.offset() + 1 for each in self._batch}
        offsets = [TopicPartition(self._source, partition, offset) for partition, offset in ends.items()]
        try:
            self._producer.begin_transaction()
            for message in self._batch:
                self._producer.produce(self._target, b"copy of " + message.value(), partition=message.partition())
            metadata = self._consumer.consumer_group_metadata()
            self._again(lambda: self._producer.send_offsets_to_transaction(offsets, metadata))
            time.sleep(random.choice((0.0, 0.0, 0.25)))  # a good moment to be killed, or to be frozen
            self._again(self._producer.commit_transaction)
        except KafkaException as failed:
            print("batch failed:", failed, flush=True)
            if not failed.args[0].txn_requires_abort():
                raise
            self._again(self._producer.abort_transaction)
            self._rewind()

    def _again(self, step: Any) -> None:
        while True:
            try:
                step()
                return
            except KafkaException as failed:
                if not failed.args[0].retriable():
                    raise

    def _rewind(self) -> None:
        starts: dict[int, int] = {}
        for message in self._batch:
            starts.setdefault(message.partition(), message.offset())
        for partition, offset in starts.items():
            try:
                self._consumer.seek(TopicPartition(self._source, partition, offset))
            except KafkaException:
                pass  # it was taken away; whoever has it begins at the committed offset


if __name__ == "__main__":
    lifeline = Lifeline()
    lifeline.watch_stdin()
    Job(*sys.argv[1:5], json.loads(sys.argv[5])).run(lifeline)
