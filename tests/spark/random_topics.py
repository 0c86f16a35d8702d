"""Topics made by chance, and what ordinary clients read in them: the measure for everything that Spark reads.

A seed decides all: partitions (some stay empty), codecs, segments, compaction, records without keys or values, headers,
both kinds of timestamp, transactions that are committed, aborted, or still open at the end.

    with random_topics(count=3) as topics:          # they are still: nothing is compacted any more
        topics[0].rows("read_committed")            # what librdkafka reads

``HEADPOND_SPARK_SEED`` repeats a run; a test that fails prints it.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from headpond.client import Client
from headpond.client.admin import Admin, ConfigResource
from headpond.model import TopicPartition as Partition
from headpond.testing import Broker
from support.internal_client import run_with_client
from support.waiting import eventually

SEED = "HEADPOND_SPARK_SEED"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ISOLATIONS = ("read_committed", "read_uncommitted")
SETTINGS = {"log.cleaner.backoff.ms": 20, "log.initial.task.delay.ms": 0}
TIMEOUT_S = 30
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
HEADER_NAMES = ("trace", "trace", "größe", "", "x" * 200)


class Row(NamedTuple):
    """Every field that a record has for its readers."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...] | None


@contextlib.contextmanager
def random_topics(count: int) -> Iterator[list[RandomTopic]]:
    """In a broker of their own, written and then left alone."""
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(1_000_000))
    print(f"{SEED}={seed}")
    with Broker(settings=SETTINGS) as broker:
        topics = [RandomTopic(broker, seed + number, is_compacted=number % 2 == 1) for number in range(count)]
        try:
            for topic in topics:
                topic.write()
            broker.settings["log.cleaner.enable"] = "false"
            broker.restart()
            yield topics
        finally:
            for topic in topics:
                topic.close()


class RandomTopic:
    def __init__(self, broker: Broker, seed: int, *, is_compacted: bool) -> None:
        self.broker = broker
        self.seed = seed
        self.name = f"chance-{seed}"
        self.is_compacted = is_compacted
        self._chance = chance = random.Random(seed)
        self.partitions = chance.randint(2, 5)
        self._written = sorted(chance.sample(range(self.partitions), chance.randint(1, self.partitions)))
        self._timestamp_types = chance.sample(("CreateTime", "LogAppendTime"), 2)
        self._plain: dict[str, Producer] = {}
        self._transactional: list[Producer] = []
        self._open: set[Producer] = set()
        self._errors: list[KafkaError] = []

    def __repr__(self) -> str:
        return f"{SEED}={self.seed}"

    def write(self) -> None:
        """All of it; some transactions stay open."""
        chance = self._chance
        config = {
            "internal.segment.bytes": chance.choice((20_000, 1_000_000)),
            "message.timestamp.type": self._timestamp_types[0],
            "message.timestamp.after.max.ms": 2**62,
            "compression.type": chance.choice(("producer", "producer", *CODECS[1:])).replace("none", "uncompressed"),
        }
        if self.is_compacted:
            config = {**config, **COMPACTED, "internal.segment.bytes": 20_000}
        self.broker.create_topic(self.name, self.partitions, **config)
        for number in range(chance.randint(1, 3)):
            producer = self._producer(
                **{"transactional.id": f"{self.name}-{number}", "transaction.timeout.ms": 900_000}
            )
            producer.init_transactions(TIMEOUT_S)
            self._transactional.append(producer)
        self._steps(30)
        self.decide()
        if self.is_compacted:
            self._wait_for_compaction()
        else:
            self._delete_some()
        self.grow()

    def grow(self) -> None:
        """More of everything, timestamps of the other kind among it; transactions stay open."""
        self._steps(15)
        self._timestamp_types.reverse()
        self._alter("message.timestamp.type", self._timestamp_types[0])
        self._steps(15)
        self._begun(self._chance.choice(self._transactional))
        self._check()

    def decide(self) -> None:
        """Ends what is open: commits or aborts."""
        for producer in sorted(self._open, key=self._transactional.index):
            self._end(producer)
        self._check()

    def close(self) -> None:
        self._plain.clear()
        self._transactional.clear()
        self._open.clear()

    def _steps(self, count: int) -> None:
        chance = self._chance
        for _ in range(count):
            if chance.random() < 0.5:
                codec = chance.choice(CODECS)
                if codec not in self._plain:
                    self._plain[codec] = self._producer(**{"compression.type": codec})
                self._send(self._plain[codec])
                continue
            producer = chance.choice(self._transactional)
            if producer in self._open and chance.random() < 0.4:
                self._end(producer)
            else:
                self._begun(producer)

    def _begun(self, producer: Producer) -> None:
        if producer not in self._open:
            producer.begin_transaction()
            self._open.add(producer)
        self._send(producer)

    def _end(self, producer: Producer) -> None:
        self._open.discard(producer)
        if self._chance.random() < 0.5:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)

    def _producer(self, **more: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "linger.ms": 5,
                "batch.size": 10_000,
                "log_level": 0,  # it would tell that the broker is restarted
                "compression.type": self._chance.choice(CODECS),
                **more,
            }
        )

    def _send(self, producer: Producer) -> None:
        chance = self._chance
        for _ in range(chance.choice((1, 1, 2, 5, 30))):
            producer.produce(
                self.name,
                key=self._key(),
                value=self._value(),
                partition=chance.choice(self._written),
                headers=self._headers(),
                timestamp=chance.choice((1, 999, 1_700_000_000_000 + chance.randrange(10**6), 32_503_680_000_000)),
                on_delivery=self._delivered,
            )
        assert producer.flush(TIMEOUT_S) == 0

    def _key(self) -> bytes | None:
        chance = self._chance
        if not self.is_compacted and chance.random() < 0.2:
            return None
        return chance.choice((b"", b"key-%d" % chance.randrange(12), chance.randbytes(chance.randrange(1, 20))))

    def _value(self) -> bytes | None:
        chance = self._chance
        size = chance.choice((0, 1, 30, 200, 3_000))
        return chance.choice((None, chance.randbytes(size), b"repeated " * (size // 9), b"\x00" * size))

    def _headers(self) -> list[tuple[str, bytes | None]]:
        chance = self._chance
        return [
            (chance.choice(HEADER_NAMES), chance.choice((None, b"", b"one", chance.randbytes(40))))
            for _ in range(chance.choice((0, 0, 1, 2, 7)))
        ]

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(error)

    def _check(self) -> None:
        assert not self._errors, self._errors

    def _wait_for_compaction(self) -> None:
        """Everything that is there is decided: once it fills some segments, some of it goes."""
        listed = self.broker.data_dir / "cleaner-offset-checkpoint"
        filler, chance = self._producer(), random.Random(self.seed)
        for number in range(80):  # some segments, whatever the codec: the last one is never compacted
            value = chance.randbytes(900)
            filler.produce(self.name, value, b"filler-%d" % (number % 2), partition=self._written[0])
            assert filler.flush(TIMEOUT_S) == 0
        eventually(
            lambda: listed.exists() and f"{self.name} {self._written[0]} " in listed.read_text(),
            what=f"the compaction of {self.name}",
        )

    def _delete_some(self) -> None:
        rows = self.rows("read_uncommitted")
        if rows and self._chance.random() < 0.5:
            row = self._chance.choice(rows)
            before = {Partition(self.name, row.partition): row.offset}
            self._ask(lambda admin: admin.delete_records(before))

    def _alter(self, setting: str, value: str) -> None:
        self._ask(lambda admin: admin.alter_configs(ConfigResource("topic", self.name), {setting: value}))

    def _ask(self, question: Any) -> None:
        async def ask(client: Client) -> None:
            await question(Admin(client))

        run_with_client(self.broker.bootstrap_servers, ask)

    def rows(self, isolation: str) -> list[Row]:
        """What librdkafka reads from the beginning to the end, by partition and offset."""
        with self._consumer(isolation) as consumer:
            consumer.assign([TopicPartition(self.name, n, OFFSET_BEGINNING) for n in range(self.partitions)])
            return sorted(_until_the_end(consumer, self.partitions), key=lambda row: (row.partition, row.offset))

    def offsets_at(self, timestamps_ms: dict[int, int], isolation: str) -> dict[int, int | None]:
        """Where librdkafka would begin to read each partition; None: no record is so late."""
        with self._consumer(isolation) as consumer:
            asked = [TopicPartition(self.name, n, timestamp_ms) for n, timestamp_ms in timestamps_ms.items()]
            found = consumer.offsets_for_times(asked, TIMEOUT_S)
        assert not [one.error for one in found if one.error]
        return {one.partition: None if one.offset < 0 else one.offset for one in found}

    @contextlib.contextmanager
    def _consumer(self, isolation: str) -> Iterator[Consumer]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "check.crcs": True,
            }
        )
        try:
            yield consumer
        finally:
            consumer.close()


def _until_the_end(consumer: Consumer, partitions: int) -> Iterator[Row]:
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, "the client gets nothing more"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
            continue
        kind, timestamp_ms = message.timestamp()
        headers = message.headers()
        yield Row(
            message.topic(),
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            timestamp_ms,
            int(kind == TIMESTAMP_LOG_APPEND_TIME),
            tuple(headers) if headers else None,
        )
