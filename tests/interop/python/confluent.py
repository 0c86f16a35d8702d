"""An older confluent-kafka: records with every codec, and a group of two lives. confluent.py BOOTSTRAP PREFIX"""

import json
import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP, TOPIC = sys.argv[1:]
FIRST_MS = 1_700_000_000_000


def main():
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config={"retention.ms": "-1"})])[TOPIC].result(30)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": BOOTSTRAP, "compression.type": codec, "enable.idempotence": True})
        offsets = []
        for n in range(8):
            producer.produce(
                TOPIC,
                b"value %d" % n,
                b"key",
                0,
                headers=[("h", b"1")],
                timestamp=FIRST_MS + n,
                on_delivery=lambda error, message, offsets=offsets: offsets.append(message.offset()),
            )
        assert producer.flush(30) == 0
        say(f"produced-{codec}", offsets)
    found = [
        [m.offset(), m.timestamp()[1], m.key().decode(), m.value().decode(), m.headers()[0][0]]
        for m in life(25) + life(15)
    ]
    say("read", found)
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": TOPIC})
    say("by_timestamp", consumer.offsets_for_times([TopicPartition(TOPIC, 0, FIRST_MS + 5)], timeout=30)[0].offset)
    consumer.close()
    admin.delete_topics([TOPIC])[TOPIC].result(30)
    say("deleted", 0)


def life(count):
    options = {"group.id": TOPIC, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, **options})
    consumer.subscribe([TOPIC])
    found = consumer.consume(count, 30)
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def say(check, found):
    print(json.dumps({"check": check, "found": found}))


main()
