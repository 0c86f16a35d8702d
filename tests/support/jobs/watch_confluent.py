"""A consumer that reads, commits and writes down what it owned and committed: confluent-kafka."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from lifeline import Lifeline
from notes import note

COMMIT_EVERY_S = 0.1


class Watcher:
    def __init__(self, bootstrap: str, group: str, topic: str, options: dict[str, Any]) -> None:
        self._topic = topic
        self._next: dict[int, int] = {}  # of what it owns and has read from: the offset to commit
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "metadata.recovery.strategy": "none",
                "reconnect.backoff.max.ms": 300,
                "fetch.wait.max.ms": 50,
                **options,
            }
        )

    def run(self, lifeline: Lifeline) -> None:
        self._consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        commit_at = 0.0
        while not lifeline.is_asked_to_stop:
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                self._read(message)
            if time.monotonic() >= commit_at:
                commit_at = time.monotonic() + COMMIT_EVERY_S
                self._commit()
        self._consumer.close()

    def _read(self, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if partition not in self._next:
            note("first", {partition: offset})
        self._next[partition] = offset + 1

    def _commit(self) -> None:
        if not self._next:
            return
        offsets = [TopicPartition(self._topic, partition, offset) for partition, offset in self._next.items()]
        sent_at = time.monotonic()
        try:
            answers = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as refused:
            note("refused", str(refused))
            return
        note("committed", {each.partition: each.offset for each in answers if each.error is None}, sent_at)

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        note("assigned", [each.partition for each in partitions])

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._drop(partitions)
        note("revoked", [each.partition for each in partitions])

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._drop(partitions)
        note("lost", [each.partition for each in partitions])

    def _drop(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._next.pop(each.partition, None)


if __name__ == "__main__":
    lifeline = Lifeline()
    lifeline.watch_stdin()
    Watcher(*sys.argv[1:4], json.loads(sys.argv[4])).run(lifeline)
