"""Draws a run's options and its plan of faults from the seed.

Swarm       Each seed enables about half of the kinds of faults and of the workloads, and draws its own rates: a run in
            which everything happens at once hides what two faults alone would show.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from simulation import faults
from simulation.faults import Fault
from simulation.harness.chance import stream
from simulation.site import Topic

SAFETY_S = 20.0
FIRST_FAULT_S = 1.0
FAULTS = (8, 16)
"""How many a run has, from and up to."""

DRIFT_RATES = (0.8, 0.95, 1.05, 1.25)
"""Of the broker's clock. The fastest shortens what members of groups may rely on, see ``workloads/ownership``."""

MANY = 12
"""Partitions: enough of them are written at once for the journal."""

Draw = Callable[[random.Random, float, list[str]], Fault]


class Options(NamedTuple):
    """What a seed has drawn, faults apart. ``str`` of it is Python that makes it again."""

    flush: str
    kinds: tuple[str, ...]
    workloads: tuple[str, ...]
    topics: tuple[Topic, ...]
    settings: tuple[tuple[str, str], ...]
    safety_s: float = SAFETY_S

    @property
    def client_names(self) -> list[str]:
        return [f"c-{name}" for name in self.workloads]


def _seconds(chance: random.Random, least: float, most: float) -> float:
    return round(chance.uniform(least, most), 3)


def _link(chance: random.Random, clients: list[str]) -> tuple[str, str]:
    client = chance.choice(clients)
    return (client, "b1") if chance.random() < 0.5 else ("b1", client)


KINDS: dict[str, Draw] = {
    "kill": lambda c, at, _: faults.Kill(at, _seconds(c, 0.05, 1.0)),
    "power cut": lambda c, at, _: faults.PowerCut(at, _seconds(c, 0.05, 1.5)),
    "crash at operation": lambda c, at, _: faults.CrashAtOperation(at, c.randrange(60), c.random() < 0.3),
    "crash at sync": lambda c, at, _: faults.CrashAtOperation(at, c.randrange(8), keeps_power=False, only="sync"),
    "crash at name": lambda c, at, _: faults.CrashAtOperation(at, c.randrange(8), c.random() < 0.5, "name"),
    "stop": lambda c, at, _: faults.Stop(at, _seconds(c, 0.05, 0.5)),
    "pause": lambda c, at, _: faults.Pause(at, "b1", _seconds(c, 0.1, 3.0)),
    "pause client": lambda c, at, clients: faults.Pause(at, c.choice(clients), _seconds(c, 0.5, 8.0)),
    "kill client": lambda c, at, clients: faults.KillClient(at, c.choice(clients), _seconds(c, 0.1, 3.0)),
    "cut": lambda c, at, clients: faults.Cut(at, *_link(c, clients), _seconds(c, 0.2, 5.0)),
    "stall": lambda c, at, clients: faults.Stall(at, *_link(c, clients), _seconds(c, 1.0, 8.0)),
    "slow link": lambda c, at, clients: faults.SlowLink(
        at, *_link(c, clients), _seconds(c, 0.5, 5.0), _seconds(c, 0.02, 0.5)
    ),
    "clock jump": lambda c, at, clients: faults.ClockJump(
        at, c.choice(["b1", *clients]), c.choice((-7_200_000, -5_000, 5_000, 3_000_000)), _seconds(c, 1, 8)
    ),
    "clock drift": lambda c, at, _: faults.ClockDrift(at, "b1", c.choice(DRIFT_RATES), _seconds(c, 2, 10)),
    "slow disk": lambda c, at, _: faults.SlowDisk(
        at, _seconds(c, 0.01, c.choice((0.1, 0.5, 1.5))), _seconds(c, 0.5, 4.0), c.choice(("", "", ".log"))
    ),
    "full disk": lambda c, at, _: faults.FullDisk(at, c.randrange(4_000), _seconds(c, 0.3, 3.0)),
    "failed sync": lambda c, at, _: faults.FailedSync(at),
    "failed write": lambda c, at, _: faults.FailedWrite(at, c.randrange(300)),
    "cold cache": lambda c, at, _: faults.ColdCache(at),
    "rotten index": lambda c, at, _: faults.RottenIndex(at, c.randrange(1 << 30)),
    "store outage": lambda c, at, _: faults.StoreOutage(at, _seconds(c, 0.3, 4.0)),
    "store leader change": lambda c, at, _: faults.StoreLeaderChange(at, _seconds(c, 0.1, 1.5)),
    "lost store answer": lambda c, at, _: faults.LostStoreAnswer(at, c.random() < 0.5),
    "silent watch": lambda c, at, _: faults.SilentWatch(at, _seconds(c, 0.3, 3.0), c.random() < 0.3),
}
LOSES_PAGES = ("power cut", "failed sync", "crash at operation", "crash at sync", "crash at name")
"""Without a flush before each acknowledgement they may take acknowledged records back, as in Kafka."""


def draw_options(seed: int, workloads: list[str]) -> Options:
    chance = stream(seed, "options")
    flush = chance.choice(("ack", "ack", "ack", "os"))
    kinds = [kind for kind in KINDS if flush == "ack" or kind not in LOSES_PAGES]
    enabled = tuple(kind for kind in kinds if chance.random() < 0.5) or (chance.choice(kinds),)
    chosen = tuple(name for name in workloads if chance.random() < 0.5) or (chance.choice(workloads),)
    return Options(flush, enabled, chosen, draw_topics(chance, chosen), draw_settings(chance, flush))


def draw_plan(seed: int, options: Options) -> tuple[Fault, ...]:
    chance = stream(seed, "faults")
    count = chance.randrange(*FAULTS)
    times_s = sorted(round(chance.uniform(FIRST_FAULT_S, options.safety_s), 3) for _ in range(count))
    return tuple(KINDS[chance.choice(options.kinds)](chance, at_s, options.client_names) for at_s in times_s)


def draw_topics(chance: random.Random, workloads: tuple[str, ...]) -> tuple[Topic, ...]:
    small = ("internal.segment.bytes", str(chance.choice((2_000, 8_000, 100_000))))
    compacted = (
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("delete.retention.ms", str(chance.choice((0, 86_400_000)))),
        ("segment.ms", "2000"),
    )
    copied = (Topic("source", chance.choice((1, 2)), (small,)), Topic("target", 1, (small,)))
    return (
        Topic("lasting", chance.choice((1, 3, MANY)), (small,)),
        Topic("compacted", chance.choice((1, 2)), (small, *compacted)),
        Topic("short", 1, (small, ("retention.ms", "4000"), ("segment.ms", "1000"), ("file.delete.delay.ms", "500"))),
        Topic("passing", chance.choice((1, 4)), (small,), is_lasting=False),
        *(copied if "copying" in workloads else ()),
    )


def draw_settings(chance: random.Random, flush: str) -> tuple[tuple[str, str], ...]:
    return (
        ("headpond.flush", flush),
        ("offsets.topic.num.partitions", str(chance.choice((1, 3)))),
        ("transaction.state.log.num.partitions", str(chance.choice((1, 3)))),
        ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000"),
        ("log.roll.ms", str(chance.choice((1_500, 604_800_000)))),
        ("log.initial.task.delay.ms", "500"),
        ("log.retention.check.interval.ms", "1000"),
        ("log.cleaner.backoff.ms", str(chance.choice((300, 1_000, 15_000)))),
        ("group.initial.rebalance.delay.ms", str(chance.choice((0, 500)))),
        ("group.min.session.timeout.ms", "1000"),
        ("group.consumer.min.session.timeout.ms", "1000"),
        ("group.consumer.session.timeout.ms", "3000"),
        ("group.consumer.min.heartbeat.interval.ms", "200"),
        ("group.consumer.heartbeat.interval.ms", "500"),
    )
