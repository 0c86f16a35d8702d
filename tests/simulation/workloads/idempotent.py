"""Idempotent producers with five requests in flight, retried by the client until the delivery time-out."""

from __future__ import annotations

from headpond.client import ClientError
from headpond.client.outbox import Delivery
from headpond.client.producer import Producer, Record
from simulation.history import Send
from simulation.site import Site

DELIVERY_TIMEOUT_S = 8.0
BURST_MAX = 12
TOMBSTONE_RATE = 0.2
"""In compacted topics."""


async def produce_idempotently(site: Site) -> None:
    async with site.client() as client:
        session = 0
        while not site.is_over:
            session += 1
            async with Producer(client, delivery_timeout_s=DELIVERY_TIMEOUT_S, batch_size_bytes=200) as producer:
                for _ in range(site.chance.randrange(2, 12)):
                    if site.is_over:
                        break
                    await _burst(site, producer, f"{site.process}.{session}")
                    await site.pause(0.05, 0.4)


async def _burst(site: Site, producer: Producer, process: str) -> None:
    """Many records at once: small batches, so that several requests are on their way."""
    topic = site.chance.choice(site.topics)
    under_way: list[tuple[Send, Delivery]] = []
    for _ in range(site.chance.randrange(1, BURST_MAX)):
        partition = site.chance.randrange(topic.partitions)
        timestamp_ms = site.host.clock.now_ms()
        is_deletion = topic.is_compacted and site.chance.random() < TOMBSTONE_RATE
        send = site.begin(
            Send(
                process=process,
                invoked_s=0,
                topic=topic.name,
                partition=partition,
                key=b"k%d" % site.chance.randrange(8),
                value=None if is_deletion else site.unique().encode(),
                timestamp_ms=timestamp_ms,
                order=site.next_order(process, topic.name, partition),
                is_idempotent=True,
            )
        )
        try:
            delivery = await producer.send(
                topic.name, partition, Record(send.key, send.value, timestamp_ms=timestamp_ms)
            )
        except ClientError as error:
            site.refused(send, int(error.code))  # raises having taken nothing
        else:
            under_way.append((send, delivery))
    for send, delivery in under_way:
        try:
            send.offset = (await delivery).offset
        except ClientError as error:
            site.lost(send, error)
        else:
            site.ok(send)
