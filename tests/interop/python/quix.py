"""Counts by key with Quix Streams, exactly once; the second life has only the changelog. quix.py BOOTSTRAP PREFIX"""

import json
import sys
import tempfile
import time

from quixstreams import Application
from quixstreams.models import TopicConfig

BOOTSTRAP, PREFIX = sys.argv[1:]
COUNTED = f"{PREFIX}-counted"


def main():
    for life in range(2):
        feed(life * 30, life * 30 + 30)
        count(30)
    say("changelog", [name for name in topics() if name.startswith("changelog__")])
    say("counted", counted(60))


def application(group, state, **options):
    options = {"auto_offset_reset": "earliest", "loglevel": "ERROR", "commit_interval": 0.5, **options}
    return Application(broker_address=BOOTSTRAP, consumer_group=f"{PREFIX}-{group}", state_dir=state, **options)


def source(app):
    config = TopicConfig(num_partitions=3, replication_factor=1)
    return app.topic(PREFIX, value_serializer="json", value_deserializer="json", config=config)


def feed(start, end):
    with tempfile.TemporaryDirectory() as state:
        app = application("feed", state)
        topic = source(app)
        with app.get_producer() as producer:
            for n in range(start, end):
                message = topic.serialize(key=f"k{n % 3}", value={"n": n})
                producer.produce(topic=topic.name, key=message.key, value=message.value)


def count(expected):
    def add(value, state):
        total = state.get("total", 0) + 1
        state.set("total", total)
        return {"total": total}

    with tempfile.TemporaryDirectory() as state:
        app = application("count", state, processing_guarantee="exactly-once")
        out = app.topic(COUNTED, value_serializer="json")
        app.dataframe(source(app)).apply(add, stateful=True).to_topic(out)
        app.run(count=expected, timeout=30)


def topics():
    with tempfile.TemporaryDirectory() as state:
        app = application("list", state)
        with app.get_consumer() as consumer:
            return [name for name in consumer.list_topics(timeout=30).topics if PREFIX in name]


def counted(expected):
    found, until = {}, time.monotonic() + 30
    with tempfile.TemporaryDirectory() as state:
        app = application("read", state)
        with app.get_consumer() as consumer:
            consumer.subscribe([COUNTED])
            while sum(map(len, found.values())) < expected and time.monotonic() < until:
                message = consumer.poll(0.5)
                if message is not None and not message.error():
                    found.setdefault(message.key().decode(), []).append(json.loads(message.value())["total"])
    return found


def say(check, found):
    print(json.dumps({"check": check, "found": found}))


main()
