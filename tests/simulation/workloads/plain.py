"""Producers without an id: one Produce request at a time, sent once, with acks 0, 1 or all; some are refused.

What an answer says is final here, so a refused record must never be found in the log (P4).
"""

from __future__ import annotations

from headpond.client import Client
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.record import Record
from headpond.protocol.schema.produce import ProduceRequest
from simulation.history import Send
from simulation.site import Site, Topic

REQUEST_TIMEOUT_MS = 1_000
FUTURE_MS = 7 * 86_400_000
"""Further ahead than message.timestamp.after.max.ms allows: INVALID_TIMESTAMP."""
TOMBSTONE_RATE = 0.2
"""In compacted topics; never refused ones, for tombstones can't be told apart."""


async def produce_plainly(site: Site) -> None:
    async with site.client() as client:
        while not site.is_over:
            topic = site.chance.choice(site.topics)
            await _produce(site, client, topic, site.chance.randrange(topic.partitions))
            await site.pause(0.05, 0.4)


async def _produce(site: Site, client: Client, topic: Topic, partition: int) -> None:
    acks = site.chance.choice((-1, -1, 1, 0))
    is_refused = site.chance.random() < 0.1
    is_deletion = topic.is_compacted and not is_refused and site.chance.random() < TOMBSTONE_RATE
    timestamp_ms = site.host.clock.now_ms() + (FUTURE_MS if is_refused else 0)
    sends = [
        site.begin(
            Send(
                process=site.process,
                invoked_s=0,
                topic=topic.name,
                partition=partition,
                key=b"k%d" % site.chance.randrange(8),
                value=None if is_deletion else site.unique().encode(),
                timestamp_ms=timestamp_ms,
                acks=acks,
            )
        )
        for _ in range(site.chance.choice((1, 1, 3)))
    ]
    batch = build_batch([Record(number, timestamp_ms, send.key, send.value) for number, send in enumerate(sends)])
    request = ProduceRequest(
        acks=acks,
        timeout_ms=REQUEST_TIMEOUT_MS,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic.name, partition_data=[ProduceRequest.PartitionProduceData(index=partition, records=batch)]
            )
        ],
    )
    answer = await site.once(sends, client.request(request, version_max=12, is_answered=acks != 0))
    if acks == 0:
        for send in sends:
            send.ended_s = site.now_s  # unknown for ever
    elif answer is not None:
        told = answer.responses[0].partition_responses[0]
        for number, send in enumerate(sends):
            if told.error_code:
                site.refused(send, told.error_code)
            else:
                send.offset = told.base_offset + number
                site.ok(send)
