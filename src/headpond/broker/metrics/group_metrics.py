"""Where the values of the metrics about groups and transactions come from.

Lag is known to the broker itself: it has what groups commit and where partitions end. Each committed offset of a
partition that this broker leads has a series, ``headpond.metrics.partitions.max`` of them; the others are added up as
group, topic and partition "other". Groups come in the order in which they were first seen, so that it is the same ones
at every scrape. Nothing here runs between scrapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headpond.broker.coordinators.group_coordinator import GroupCoordinator
from headpond.broker.coordinators.transaction_coordinator import TransactionCoordinator
from headpond.broker.replicas.replicas import Replicas
from headpond.coordination.groups.machine import GroupMachine
from headpond.coordination.groups.meters import RebalanceMeter
from headpond.model import ZERO_TOPIC_ID, TopicPartition
from headpond.ports import Clock
from headpond.telemetry import catalogue
from headpond.telemetry.families import Family
from headpond.telemetry.metrics import OTHER, Histogram, Point, Source

BREATHE_EVERY = 1_000
"""Partitions or groups walked over without showing any, before the loop gets its turn."""

STATES = {
    "classic": ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"),
    "consumer": ("Empty", "Assigning", "Reconciling", "Stable"),
}
"""Always shown, so that a state without groups is 0 rather than unknown."""


def group_sources(groups: GroupCoordinator, replicas: Replicas, *, series_max: int) -> dict[Family, Source]:
    machines, meters = groups.runtime.machines, groups.meters

    def states() -> Iterator[Point | None]:
        counts = {(kind, state): 0 for kind, all_states in STATES.items() for state in all_states}
        number = 0
        for machine in machines():
            for group in list(machine.groups.values()):
                place = (group.kind, group.state)
                counts[place] = counts.get(place, 0) + 1
                number += 1
                if not number % BREATHE_EVERY:
                    yield None
        yield from counts.items()

    def offsets() -> Iterator[Point]:
        yield (), sum(machine.offsets.count for machine in machines())

    def lag() -> Iterator[Point | None]:
        number = others = 0
        for machine in machines():
            for group_id in list(machine.groups):
                for tp, behind in _lags_of(machine, group_id, replicas):
                    number += 1
                    if number <= series_max:
                        yield (group_id, tp.topic, str(tp.partition)), behind
                    else:
                        others += behind
                        if not number % BREATHE_EVERY:
                            yield None
        if number > series_max:
            yield (OTHER, OTHER, OTHER), others

    def by_type(read: Callable[[RebalanceMeter], float | Histogram]) -> Source:
        def points() -> Iterator[Point]:
            yield ("classic",), read(meters.classic)
            yield ("consumer",), read(meters.consumer)

        return points

    return {
        catalogue.GROUPS: states,
        catalogue.GROUP_OFFSETS: offsets,
        catalogue.GROUP_LAG: lag,
        catalogue.GROUP_REBALANCES: by_type(lambda meter: meter.begun),
        catalogue.GROUP_REBALANCE_DURATION: by_type(lambda meter: meter.durations),
    }


def _lags_of(machine: GroupMachine, group_id: str, replicas: Replicas) -> Iterator[tuple[TopicPartition, int]]:
    for topic, committed in list(machine.offsets.of_group(group_id).items()):
        for partition, offset in list(committed.items()):
            tp = TopicPartition(topic, partition)
            replica = replicas.get(tp)
            if replica is None or not replica.partition.is_leader:
                continue
            if offset.topic_id not in (ZERO_TOPIC_ID, replica.partition.log.topic_id):
                continue  # of a topic that was deleted and made anew
            yield tp, max(0, replica.partition.high_watermark - offset.offset)


def transaction_sources(transactions: TransactionCoordinator, clock: Clock) -> dict[Family, Source]:
    machines = transactions.runtime.machines

    def open_count() -> Iterator[Point]:
        yield (), sum(1 for machine in machines() for _ in machine.unfinished())

    def oldest_age() -> Iterator[Point]:
        began_ms = [each.started_ms for machine in machines() for each in machine.unfinished()]
        yield (), max(0.0, (clock.now_ms() - min(began_ms)) / 1000) if began_ms else 0.0

    return {catalogue.TRANSACTIONS_OPEN: open_count, catalogue.TRANSACTION_AGE: oldest_age}
