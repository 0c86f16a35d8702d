"""A consumer that reads, commits and writes down what it owned and committed: kafka-python.

What this library does not promise, and what is done about it here:

- After a rebalance it goes on where it was with what it had before, even if it was thrown out of the group in between
  and somebody else has read on. Nor does it begin again with what it has read and not committed. So the watcher asks
  for the committed offset of whatever it is assigned, and goes there: where it begins is the broker's word.
- It may hear late that its session is over, and says then that partitions are revoked which have been somebody else's
  for long. So the watcher says of those what it can prove: it had them when it sent the last commit that counts.
- It revokes twice if it is closed in the middle of a rebalance.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError
from lifeline import Lifeline
from notes import note

COMMIT_EVERY_S = 0.1


class Watcher(ConsumerRebalanceListener):  # type: ignore[misc]
    """The library calls the listener from a thread of its own, but only while ours waits in ``poll`` or ``close``."""

    def __init__(self, bootstrap: str, group: str, topic: str, options: dict[str, Any]) -> None:
        self._topic = topic
        self._owned: set[int] = set()
        self._unplaced: set[int] = set()  # of what it owns: where the position is the library's idea still
        self._next: dict[int, int] = {}  # of what it owns and has read from: the offset to commit
        self._proven_at: dict[int, float] = {}  # of what it owns and has committed: when that was sent
        self._consumer = connected(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            reconnect_backoff_max_ms=300,
            fetch_max_wait_ms=50,
            **options,
        )

    def run(self, lifeline: Lifeline) -> None:
        self._consumer.subscribe([self._topic], listener=self)
        commit_at = 0.0
        while not lifeline.is_asked_to_stop:
            try:
                self._read()
                self._place()
            except KafkaError as failed:  # the broker is away
                note("failed", repr(failed))
            if time.monotonic() >= commit_at:
                commit_at = time.monotonic() + COMMIT_EVERY_S
                self._commit()
        self._consumer.close()

    def _read(self) -> None:
        for tp, records in self._consumer.poll(timeout_ms=50).items():
            if tp.partition in self._unplaced:
                continue  # it is read again, from the right place
            if tp.partition not in self._next:
                note("first", {tp.partition: records[0].offset})
            self._next[tp.partition] = records[-1].offset + 1

    def _place(self) -> None:
        for partition in sorted(self._unplaced):
            tp = TopicPartition(self._topic, partition)
            # The library keeps a question that its caller did not wait for, and hands the answer to whoever asks the
            # same next, however old it is by then: only the second answer is surely a new one.
            self._consumer.committed(tp)
            self._consumer.seek(tp, self._consumer.committed(tp) or 0)
            self._unplaced.remove(partition)

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._owned = {each.partition for each in assigned}
        self._unplaced = set(self._owned)
        note("generation", self._consumer.group_metadata().generation_id)
        note("assigned", sorted(self._owned))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        proven_at = self._drop()
        for partition, at in proven_at.items():
            note("lost" if at is None else "revoked", [partition], at=at)

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        note("lost", sorted(self._drop()))

    def _drop(self) -> dict[int, float | None]:
        """By what it owned: until when that is proven."""
        dropped = {partition: self._proven_at.get(partition) for partition in sorted(self._owned)}
        self._owned, self._unplaced, self._next, self._proven_at = set(), set(), {}, {}
        return dropped

    def _commit(self) -> None:
        offsets, sent_at = dict(self._next), time.monotonic()
        if not offsets:
            return
        asked = {
            TopicPartition(self._topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        try:
            self._consumer.commit(asked)
        except KafkaError as refused:
            note("refused", repr(refused))
            return
        note("committed", offsets, sent_at)
        self._proven_at |= dict.fromkeys(offsets, sent_at)


def connected(topic: str, **options: Any) -> KafkaConsumer:
    while True:
        try:
            consumer = KafkaConsumer(**options)
            consumer.partitions_for_topic(topic)  # or it may join before it has heard of any
            return consumer
        except KafkaError as failed:  # the broker is away
            note("failed", repr(failed))
            time.sleep(0.1)


if __name__ == "__main__":
    lifeline = Lifeline()
    lifeline.watch_stdin()
    Watcher(*sys.argv[1:4], json.loads(sys.argv[4])).run(lifeline)
