"""Consume, transform, produce, with aiokafka. It names the group but no generation when it commits offsets: only the
transactional id keeps a predecessor out, so there may be one such job at a time, and it takes the id before it reads.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from lifeline import Lifeline


async def run(
    bootstrap: str, source: str, target: str, name: str, consumer_options: dict[str, Any], lifeline: Lifeline
) -> None:
    group = f"{source}-copiers"
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=f"{source}-{name}", transaction_timeout_ms=10_000
    )
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=40,
        **consumer_options,
    )
    async with producer, consumer:
        while not lifeline.is_asked_to_stop:
            batches = await consumer.getmany(timeout_ms=100)
            if not batches:
                continue
            # Whatever goes wrong ends the process: the next one begins at the committed offsets.
            async with producer.transaction():
                for tp, messages in batches.items():
                    for message in messages:
                        await producer.send(target, b"copy of " + message.value, partition=tp.partition)
                ends = {tp: messages[-1].offset + 1 for tp, messages in batches.items()}
                await producer.send_offsets_to_transaction(ends, group)


if __name__ == "__main__":
    lifeline = Lifeline()
    lifeline.watch_stdin()
    asyncio.run(run(*sys.argv[1:5], json.loads(sys.argv[5]), lifeline))
