"""Exactly once: jobs consume, transform and produce in transactions, while they are killed and frozen and the broker is
killed, at any moment. What a read_committed consumer finds in the end is one copy of the input, in order per partition.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from support.broker import BrokerProcess
from support.chaos import Chaos
from support.jobs.process import JobProcess
from support.variants import kinds
from support.verbs import LATEST, Topic, create_topic, end_offset
from support.waiting import eventually
from support.wire import Wire

PARTITIONS = 3
SOURCE, TARGET = "orders", "invoices"
READ_COMMITTED = 1
DEADLINE_S = 90.0
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": 1_500,
    "group.consumer.session.timeout.ms": 1_500,
    "group.consumer.min.heartbeat.interval.ms": 300,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.assignment.interval.ms": 100,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    # A few partitions, as many as matter: a start after a kill reads them all.
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}
CLASSIC = {"session.timeout.ms": 1_500, "heartbeat.interval.ms": 300}
KINDS: dict[str, tuple[str, int, dict[str, Any]]] = {
    # by name: the job's script, how many run at once, the options of its consumer
    "confluent-eager": ("copy_confluent.py", 2, CLASSIC),
    "confluent-consumer": ("copy_confluent.py", 2, {"group.protocol": "consumer"}),
    # It names no generation when it commits offsets in a transaction, so nothing would fence a job whose session ended
    # while it was frozen: there is one that never loses its partitions, a static member with a long session.
    "aiokafka": ("copy_aiokafka.py", 1, {"session_timeout_ms": 60_000, "group_instance_id": "job"}),
    # Version 2 of transactions, which the clients above do not have; one answer of ten is lost.
    "wire-v2": ("copy_wire_v2.py", 2, {"losing": 0.1}),
}


class Input:
    """Numbered records, so many in each partition as ``counts`` says."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self.counts = [0] * PARTITIONS

    def add(self, count: int) -> None:
        for _ in range(count):
            for partition in range(PARTITIONS):
                self._producer.produce(SOURCE, b"%d/%d" % (partition, self.counts[partition]), partition=partition)
                self.counts[partition] += 1
        assert self._producer.flush(DEADLINE_S) == 0


@contextlib.contextmanager
def running(jobs: list[JobProcess]) -> Iterator[None]:
    try:
        for job in jobs:
            job.start()
        yield
    finally:
        for job in jobs:
            job.kill()


def strike(chaos: Chaos, broker: BrokerProcess, jobs: list[JobProcess]) -> str:
    """Kill the broker, kill jobs, freeze jobs, perhaps for longer than their session; start what is not running."""
    chance = chaos.random
    fates = [chance.choice(("spared", "spared", "killed", "frozen")) for _ in jobs]
    is_broker_hit = chance.random() < 0.3
    if is_broker_hit:
        broker.kill()
    for job, fate in zip(jobs, fates, strict=True):
        if fate == "killed":
            job.kill()
        elif fate == "frozen" and job.is_running:
            job.freeze()
    chaos.pause(0.0, 0.3)
    if is_broker_hit:
        broker.start()
    for job in jobs:
        if not job.is_running:
            job.start()
        elif job.is_frozen and chance.random() < 0.3:
            job.thaw()
    return f"broker {'killed' if is_broker_hit else 'spared'}, jobs {fates}"


def committed_values(bootstrap: str, partition: int) -> list[bytes]:
    """Everything that a read_committed consumer sees, to the end of the partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "auditor",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(TARGET, partition, 0)])
    values = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"only {len(values)} records of partition {partition}"
        if message.error() is None:
            values.append(message.value())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return values


def stable_end(wire: Wire, topic: Topic, partition: int) -> int:
    """Where the first transaction begins that is still open."""
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    entry = ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=[wanted])
    request = ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=[entry])
    answer = wire.call(request, 9).topics[0].partitions[0]
    assert answer.error_code == 0, answer.error_code
    return int(answer.offset)


@pytest.mark.parametrize("kind", kinds(KINDS, ordinary={"confluent-eager", "wire-v2"}))
def test_killed_jobs_and_a_killed_broker_leave_one_copy_of_everything_in_order(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path, kind: str
) -> None:
    script, job_count, options = KINDS[kind]
    broker = make_broker(settings=SETTINGS).start()
    bootstrap = broker.bootstrap_servers
    with Wire(bootstrap) as wire:
        create_topic(wire, SOURCE, partitions=PARTITIONS)
        target = create_topic(wire, TARGET, partitions=PARTITIONS)
    jobs = [
        JobProcess(script, [bootstrap, SOURCE, TARGET, f"job-{n}", json.dumps(options)], tmp_path / f"job-{n}")
        for n in range(job_count)
    ]
    source = Input(bootstrap)
    source.add(50)
    with running(jobs):
        chaos = Chaos(short_s=3.0)
        while chaos.is_on:
            source.add(chaos.random.randrange(60, 200))
            chaos.pause(0.1, 1.2)
            print(strike(chaos, broker, jobs))

        for job in jobs:
            if job.is_frozen:
                job.thaw()

        def is_copied() -> bool:
            for job in jobs:
                if not job.is_running:  # it met an error that it can't recover from: its supervisor starts another
                    job.start()
            found = [len(committed_values(bootstrap, partition)) for partition in range(PARTITIONS)]
            return all(map(int.__ge__, found, source.counts))

        eventually(is_copied, what=lambda: "\n".join(job.said() for job in jobs), deadline_s=DEADLINE_S)
        for job in jobs:
            job.stop()
    assert [line for job in jobs for line in job.said().splitlines() if line.startswith("fault:")] == []
    with Wire(bootstrap) as wire:
        for partition in range(PARTITIONS):
            # No transaction is left open, to hold up the readers of what comes later.
            eventually(lambda at=partition: stable_end(wire, target, at) == end_offset(wire, target, partition=at))  # type: ignore[misc]
    for partition in range(PARTITIONS):
        expected = [b"copy of %d/%d" % (partition, number) for number in range(source.counts[partition])]
        assert committed_values(bootstrap, partition) == expected
