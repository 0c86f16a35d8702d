"""An older kafka-python: records with every codec, and a group of two lives. kafka_python.py BOOTSTRAP PREFIX"""

import json
import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

BOOTSTRAP, TOPIC = sys.argv[1:]
FIRST_MS = 1_700_000_000_000


def main():
    admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    admin.create_topics([NewTopic(TOPIC, 1, 1, topic_configs={"retention.ms": "-1"})])
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, compression_type=codec, linger_ms=20)
        sent = [producer.send(TOPIC, b"value %d" % n, b"key", [("h", b"1")], 0, FIRST_MS + n) for n in range(8)]
        say(f"produced-{codec or 'none'}", [each.get(30).offset for each in sent])
        producer.close()
    first, second = life(25), life(15)
    say("read", [[r.offset, r.timestamp, r.key.decode(), r.value.decode(), r.headers[0][0]] for r in first + second])
    consumer = KafkaConsumer(bootstrap_servers=BOOTSTRAP)
    partition = TopicPartition(TOPIC, 0)
    say("by_timestamp", consumer.offsets_for_times({partition: FIRST_MS + 5})[partition].offset)
    say("deleted", admin.delete_topics([TOPIC]).topic_error_codes[0][1])


def life(count):
    options = {"group_id": TOPIC, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer(TOPIC, bootstrap_servers=BOOTSTRAP, max_poll_records=1, **options)
    found = [next(consumer) for _ in range(count)]
    consumer.commit()
    consumer.close()
    return found


def say(check, found):
    print(json.dumps({"check": check, "found": found}))


main()
