"""Compaction as a client sees it, in a real broker with its real worker process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from support.broker import BrokerProcess
from support.waiting import eventually

SETTINGS = {"log.cleaner.backoff.ms": 20, "log.initial.task.delay.ms": 0}
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "20000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
    "file.delete.delay.ms": "100",
}


def create(broker: BrokerProcess, topic: str, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    new = NewTopic(topic, 1, 1, config={**COMPACTED, **configs})
    admin.create_topics([new])[topic].result(30)


def produce(broker: BrokerProcess, topic: str, pairs: list[tuple[str, str | None]], **options: object) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5, "batch.size": 10_000, **options}
    )
    errors: list[object] = []
    for key, value in pairs:
        producer.produce(topic, key=key, value=value, on_delivery=lambda error, _: error and errors.append(error))
        producer.poll(0)
    assert producer.flush(30) == 0 and not errors


def consume(broker: BrokerProcess, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of everything from the beginning to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                assert message.error().name() == "_PARTITION_EOF", message.error()
                return found
            found.append((message.offset(), message.key(), message.value()))
    finally:
        consumer.close()


def worker_pids(broker: BrokerProcess) -> list[int]:
    children = Path(f"/proc/{broker.pid}/task/{broker.pid}/children").read_text().split()
    return [pid for pid in map(int, children) if b"process_child" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def filler(number: int = 300) -> list[tuple[str, str | None]]:
    """Enough to fill the active segment, so that what came before lies in finished ones."""
    return [(f"filler-{n % 10}", "x" * 200) for n in range(number)]


def test_a_consumer_gets_the_latest_value_of_each_key_and_none_of_the_deleted(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker(settings=SETTINGS).start()
    create(broker, "table")
    assert worker_pids(broker) == [], "no worker process before there is something to compact"
    produce(broker, "table", [(f"k{n % 50}", f"v{n}") for n in range(2_000)], **{"compression.type": "lz4"})
    produce(broker, "table", [(f"k{n}", None) for n in range(10)])
    produce(broker, "table", filler())

    def is_compacted() -> bool:
        produce(broker, "table", filler(150))
        found = consume(broker, "table")
        keys = [key for _, key, _ in found if key is not None and key.startswith(b"k")]
        return len(keys) == 40

    eventually(is_compacted, what=lambda: f"one record per key\n{broker.logs()}", deadline_s=60)
    found = [row for row in consume(broker, "table") if row[1] is not None and row[1].startswith(b"k")]
    assert [(key, value) for _, key, value in found] == [
        (f"k{n % 50}".encode(), f"v{n}".encode()) for n in range(1_950, 2_000) if n % 50 >= 10
    ]
    assert [offset for offset, _, _ in found] == [n for n in range(1_950, 2_000) if n % 50 >= 10]
    broker.restart(kill=True)
    again = [row for row in consume(broker, "table") if row[1] is not None and row[1].startswith(b"k")]
    assert again == found
    broker.stop()


def test_a_killed_worker_process_is_replaced_and_a_killed_broker_takes_it_along(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    # So slow that the worker is there for as long as the test looks at it.
    slow = {**SETTINGS, "log.cleaner.io.max.bytes.per.second": 40_000}
    broker = make_broker(settings=slow).start()
    create(broker, "table", **{"internal.segment.bytes": "4000000"})
    produce(broker, "table", [(f"k{n % 1_800}", "v" * 1_000) for n in range(9_000)])
    (first,) = eventually(lambda: worker_pids(broker), what=lambda: f"a worker process\n{broker.logs()}")
    os.kill(first, signal.SIGKILL)
    (second,) = eventually(lambda: [pid for pid in worker_pids(broker) if pid != first])
    produce(broker, "table", [("still", "there")])
    broker.kill()
    eventually(lambda: not Path(f"/proc/{second}").exists(), what="the end of the worker process")
    broker.start()
    table = {key: value for _, key, value in consume(broker, "table")}
    assert len(table) == 1_801 and table[b"still"] == b"there"
    eventually(lambda: worker_pids(broker))
    broker.stop()
    assert not [name for name in broker.logs().splitlines() if "ERROR" in name]


def compact_from_now_on(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    entry = ConfigEntry("log.cleaner.backoff.ms", "20", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def test_many_segments_of_which_nothing_stays_are_no_obstacle_to_librdkafka(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker(settings={"log.cleaner.backoff.ms": 3_600_000}).start()
    create(broker, "table")
    produce(broker, "table", [("first", "1"), *(("again", f"{n}" + "x" * 15_000) for n in range(60)), ("last", "1")])
    compact_from_now_on(broker)

    def is_compacted() -> bool:
        return sum(file.stat().st_size for file in (broker.data_dir / "table-0").glob("*.log")) < 60_000

    eventually(is_compacted, what=lambda: f"a compacted log\n{broker.logs()}", retry_on=(FileNotFoundError,))
    found = [(offset, key) for offset, key, _ in consume(broker, "table")]
    assert (found[0], found[-2:]) == ((0, b"first"), [(60, b"again"), (61, b"last")])
    broker.stop()


def test_settings_of_compaction_change_while_the_broker_runs(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"log.cleaner.backoff.ms": 3_600_000}).start()
    create(broker, "table")
    produce(broker, "table", [(f"k{n % 5}", "v" * 100) for n in range(1_000)])
    assert len(consume(broker, "table")) == 1_000
    compact_from_now_on(broker)
    eventually(lambda: len(consume(broker, "table")) < 500, what=lambda: f"a compacted log\n{broker.logs()}")
    broker.stop()
