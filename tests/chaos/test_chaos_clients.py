"""A group of real consumers in processes of their own that come, leave, are killed and are frozen, while the broker is
killed, too. They write down what they owned and committed: nobody had what another one had, and no commit was lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.broker import BrokerProcess
from support.chaos import Chaos
from support.churn.judge import Judge
from support.jobs.process import JobProcess
from support.variants import kinds
from support.verbs import create_topic
from support.waiting import eventually
from support.wire import Wire

MEMBERS, PARTITIONS = 5, 12
GROUP, TOPIC = "readers", "letters"
SESSION_MS = 1_500
DEADLINE_S = 60.0
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 300,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.assignment.interval.ms": 100,
    "offsets.topic.num.partitions": 3,
}
CLASSIC = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 300}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    # by name: the script of the members, the options of their consumers
    "confluent-range": ("watch_confluent.py", {"partition.assignment.strategy": "range", **CLASSIC}),
    "confluent-cooperative": (
        "watch_confluent.py",
        {"partition.assignment.strategy": "cooperative-sticky", **CLASSIC},
    ),
    "confluent-consumer": ("watch_confluent.py", {"group.protocol": "consumer"}),
    "kafka-python": ("watch_kafka_python.py", {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 300}),
    "aiokafka": ("watch_aiokafka.py", {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 300}),
}


class Troop:
    """The processes, those that are gone included."""

    def __init__(self, bootstrap: str, script: str, options: dict[str, Any], folder: Path) -> None:
        self._script = script
        self._arguments = [bootstrap, GROUP, TOPIC, json.dumps(options)]
        self._folder = folder
        self.jobs: dict[str, JobProcess] = {}
        self.notes: dict[str, Path] = {}
        self.deaths: dict[str, float] = {}

    def add(self) -> None:
        name = f"m{len(self.notes)}"
        self.notes[name] = self._folder / name
        self.jobs[name] = JobProcess(self._script, self._arguments, self.notes[name]).start()

    def kill(self, name: str) -> None:
        self.jobs.pop(name).kill()
        self.deaths[name] = time.monotonic()

    def stir(self, chaos: Chaos) -> None:
        chance = chaos.random
        for name in list(self.jobs):
            job = self.jobs[name]
            if job.is_frozen:
                if chance.random() < 0.5:
                    job.thaw()
                continue
            match chance.choice(("spared",) * 5 + ("killed", "leaves", "frozen")):
                case "killed":
                    self.kill(name)
                case "leaves":
                    self.jobs.pop(name).stop()
                    self.deaths[name] = time.monotonic()
                case "frozen":
                    job.freeze()
        while len(self.jobs) < MEMBERS:
            self.add()

    def thaw(self) -> None:
        for job in self.jobs.values():
            if job.is_frozen:
                job.thaw()

    def end(self) -> None:
        for name in list(self.jobs):
            self.kill(name)


class Letters:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self.ends = [0] * PARTITIONS

    def add(self, count: int) -> None:
        for partition in range(PARTITIONS):
            for _ in range(count):
                self._producer.produce(TOPIC, b"letter", partition=partition)
            self.ends[partition] += count
        assert self._producer.flush(DEADLINE_S) == 0

    def committed(self) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": GROUP})
        partitions = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        found = [each.offset for each in consumer.committed(partitions, timeout=DEADLINE_S)]
        consumer.close()
        return found


@pytest.mark.parametrize("kind", kinds(KINDS, ordinary={"confluent-cooperative", "aiokafka"}))
def test_real_consumers_that_come_and_go_never_share_a_partition_and_lose_no_commit(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path, kind: str
) -> None:
    broker = make_broker(settings=SETTINGS).start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, TOPIC, partitions=PARTITIONS)
    letters = Letters(broker.bootstrap_servers)
    troop = Troop(broker.bootstrap_servers, *KINDS[kind], tmp_path)
    try:
        for _ in range(MEMBERS):
            troop.add()
        letters.add(10)
        eventually(lambda: letters.committed() == letters.ends, deadline_s=DEADLINE_S)
        chaos = Chaos(short_s=3.0)
        while chaos.is_on:
            letters.add(chaos.random.randrange(5, 20))
            troop.stir(chaos)
            if chaos.random.random() < 0.2:
                broker.restart(kill=True)
            chaos.pause(0.0, 1.0)
        troop.thaw()
        letters.add(1)  # each partition is read by somebody
        eventually(
            lambda: letters.committed() == letters.ends,
            what=lambda: f"{letters.ends}, and {letters.committed()} is committed",
            deadline_s=DEADLINE_S,
        )
    finally:
        troop.end()
    judge = Judge(troop.notes, troop.deaths)
    print(f"{len(judge.spells)} spells, {len(judge.commits)} commits")
    assert len({spell.partition for spell in judge.spells}) == PARTITIONS
    assert judge.verdicts() == []
