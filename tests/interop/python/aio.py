"""An older aiokafka: records with every codec, and a group of two lives. aio.py BOOTSTRAP PREFIX"""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

try:
    from aiokafka.admin import NewTopic
except ImportError:
    from kafka.admin import NewTopic

BOOTSTRAP, TOPIC = sys.argv[1:]
FIRST_MS = 1_700_000_000_000


async def main():
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, 1, 1, topic_configs={"retention.ms": "-1"})])
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        producer = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, compression_type=codec, enable_idempotence=True)
        await producer.start()
        records = [(b"value %d" % n, b"key", 0, FIRST_MS + n, [("h", b"1")]) for n in range(8)]
        sent = [await producer.send(TOPIC, v, k, p, t, h) for v, k, p, t, h in records]
        say(f"produced-{codec or 'none'}", [(await each).offset for each in sent])
        await producer.stop()
    first, second = await life(25), await life(15)
    say("read", [[r.offset, r.timestamp, r.key.decode(), r.value.decode(), r.headers[0][0]] for r in first + second])
    consumer = AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP)
    await consumer.start()
    partition = TopicPartition(TOPIC, 0)
    say("by_timestamp", (await consumer.offsets_for_times({partition: FIRST_MS + 5}))[partition].offset)
    await consumer.stop()
    say("deleted", (await admin.delete_topics([TOPIC])).topic_error_codes[0][1])
    await admin.close()


async def life(count):
    options = {"group_id": TOPIC, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=BOOTSTRAP, **options)
    await consumer.start()
    found = [await consumer.getone() for _ in range(count)]
    await consumer.commit()
    await consumer.stop()
    return found


def say(check, found):
    print(json.dumps({"check": check, "found": found}))


asyncio.run(main())
