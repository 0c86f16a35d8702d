"""A consumer that reads, commits and writes down what it owned and committed: aiokafka.

Rebalances go on in a task of the library. It knows of no lost partitions, only of revoked ones, perhaps somebody else's
for long. So it gives up with a last commit: whoever may still commit had them when it sent that.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError
from lifeline import Lifeline
from notes import note

COMMIT_EVERY_S = 0.1
COMMIT_S = 5.0
"""The library repeats a commit for as long as there is no broker."""


class Watcher(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, bootstrap: str, group: str, topic: str, options: dict[str, Any]) -> None:
        self._topic = topic
        self._owned: set[int] = set()
        self._next: dict[int, int] = {}  # of what it owns and has read from: the offset to commit
        self._is_committing = asyncio.Lock()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            **options,
        )

    async def run(self, lifeline: Lifeline) -> None:
        self._consumer.subscribe([self._topic], listener=self)
        await self._start()
        commit_at = 0.0
        while not lifeline.is_asked_to_stop:
            await self._read()
            if time.monotonic() >= commit_at:
                commit_at = time.monotonic() + COMMIT_EVERY_S
                async with self._is_committing:
                    await self._commit(dict(self._next))
        await self._consumer.stop()

    async def _start(self) -> None:
        while True:
            try:
                await self._consumer.start()
                return
            except KafkaError as failed:  # the broker is away
                note("failed", repr(failed))
                await asyncio.sleep(0.1)

    async def _read(self) -> None:
        try:
            batches = await self._consumer.getmany(timeout_ms=50)
        except KafkaError as failed:
            note("failed", repr(failed))
            return
        for tp, records in batches.items():
            if tp.partition in self._owned:
                if tp.partition not in self._next:
                    note("first", {tp.partition: records[0].offset})
                self._next[tp.partition] = records[-1].offset + 1

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._owned = {each.partition for each in assigned}
        note("assigned", sorted(self._owned))

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        gone = sorted(self._owned)
        read, self._owned, self._next = self._next, set(), {}
        async with self._is_committing:
            sent_at = await self._commit(read)
        note("lost" if sent_at is None else "revoked", gone, at=sent_at)

    async def _commit(self, offsets: dict[int, int]) -> float | None:
        """When it was sent, if it counts."""
        if not offsets:
            return None
        sent_at = time.monotonic()
        asked = {TopicPartition(self._topic, partition): offset for partition, offset in offsets.items()}
        try:
            await asyncio.wait_for(self._consumer.commit(asked), COMMIT_S)
        except (KafkaError, TimeoutError) as refused:
            note("refused", repr(refused))
            return None
        note("committed", offsets, sent_at)
        return sent_at


async def main() -> None:
    lifeline = Lifeline()
    lifeline.watch_stdin()
    await Watcher(*sys.argv[1:4], json.loads(sys.argv[4])).run(lifeline)


if __name__ == "__main__":
    asyncio.run(main())
