"""What the broker tells about groups and transactions: lag with a bound, every state, rebalances that are over."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from headpond.broker.metrics.group_metrics import BREATHE_EVERY, STATES, group_sources, transaction_sources
from headpond.coordination.groups.classic import Phase
from headpond.coordination.groups.meters import GroupMeters, RebalanceMeter, Stopwatch
from headpond.coordination.groups.offset_memory import NO_TIME, CommittedOffset, Offsets
from headpond.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from headpond.telemetry import catalogue
from headpond.telemetry.families import Family
from headpond.telemetry.metrics import OTHER
from unit.coordination.consumer_world import World

HIGH_WATERMARK = 100
TOPIC_ID = TopicId(b"t" * 16)


def replicas(*, led: Iterable[str] = ("orders",), followed: Iterable[str] = ()) -> Any:
    def replica(is_leader: bool) -> SimpleNamespace:
        log = SimpleNamespace(topic_id=TOPIC_ID)
        return SimpleNamespace(partition=SimpleNamespace(is_leader=is_leader, high_watermark=HIGH_WATERMARK, log=log))

    held = {**{name: replica(True) for name in led}, **{name: replica(False) for name in followed}}
    return SimpleNamespace(get=lambda tp: held.get(tp.topic))


class Coordinator:
    """The groups of one partition, and what they have committed."""

    def __init__(self) -> None:
        self.offsets = Offsets()
        self.groups: dict[str, SimpleNamespace] = {}
        self.meters = GroupMeters()
        machine = SimpleNamespace(groups=self.groups, offsets=self.offsets)
        self.runtime = SimpleNamespace(machines=lambda: [machine])

    def add(self, group_id: str, kind: str = "classic", state: str = "Stable") -> None:
        self.groups[group_id] = SimpleNamespace(kind=kind, state=state)

    def commit(self, group_id: str, tp: TopicPartition, offset: int, topic_id: TopicId = TOPIC_ID) -> None:
        if group_id not in self.groups:
            self.add(group_id)
        self.offsets.put(group_id, *tp, CommittedOffset(offset, -1, "", 0, NO_TIME, topic_id, 0))

    def shown(self, family: Family, at: Any = None, series_max: int = 100) -> dict[tuple[str, ...], Any]:
        source = group_sources(self, at or replicas(), series_max=series_max)[family]  # type: ignore[arg-type]
        return dict(point for point in source() if point is not None)


def test_lag_is_the_high_watermark_minus_what_is_committed() -> None:
    groups = Coordinator()
    groups.commit("billing", TopicPartition("orders", 0), 90)
    groups.commit("billing", TopicPartition("orders", 1), 100)
    groups.commit("audit", TopicPartition("orders", 0), 250, ZERO_TOPIC_ID)
    assert groups.shown(catalogue.GROUP_LAG) == {
        ("billing", "orders", "0"): 10,
        ("billing", "orders", "1"): 0,
        ("audit", "orders", "0"): 0,
    }
    assert groups.shown(catalogue.GROUP_OFFSETS) == {(): 3}


def test_only_who_leads_a_partition_tells_its_lag_and_only_of_the_topic_that_there_is_now() -> None:
    groups = Coordinator()
    groups.commit("billing", TopicPartition("orders", 0), 90, TopicId(b"o" * 16))
    groups.commit("billing", TopicPartition("copies", 0), 90)
    groups.commit("billing", TopicPartition("gone", 0), 90)
    assert groups.shown(catalogue.GROUP_LAG, replicas(followed=["copies"])) == {}


def test_series_beyond_the_limit_are_added_up() -> None:
    groups = Coordinator()
    for number in range(5):
        groups.commit(f"group-{number}", TopicPartition("orders", 0), 90 + number)
    assert groups.shown(catalogue.GROUP_LAG, series_max=2) == {
        ("group-0", "orders", "0"): 10,
        ("group-1", "orders", "0"): 9,
        (OTHER, OTHER, OTHER): 8 + 7 + 6,
    }
    assert len(groups.shown(catalogue.GROUP_LAG, series_max=5)) == 5


def test_a_long_walk_lets_the_loop_turn() -> None:
    groups = Coordinator()
    for number in range(BREATHE_EVERY * 3):
        groups.commit("billing", TopicPartition("orders", number), 0)
    source = group_sources(groups, replicas(), series_max=0)[catalogue.GROUP_LAG]  # type: ignore[arg-type]
    points = list(source())
    assert points.count(None) == 3 and len(points) == 4


def test_groups_that_come_and_go_between_two_turns_do_no_harm() -> None:
    groups = Coordinator()
    for name in ("a", "b", "c"):
        groups.commit(name, TopicPartition("orders", 0), 0)
    walk = iter(group_sources(groups, replicas(), series_max=10)[catalogue.GROUP_LAG]())  # type: ignore[arg-type]
    next(walk)
    del groups.groups["b"]
    groups.offsets.remove("b", "orders", 0)
    groups.commit("d", TopicPartition("orders", 0), 0)
    assert [labels[0] for labels, _ in filter(None, walk)] == ["c"]


def test_states_that_nobody_is_in_are_0() -> None:
    groups = Coordinator()
    groups.add("one", "classic", "Stable")
    groups.add("two", "consumer", "Reconciling")
    groups.add("three", "consumer", "Reconciling")
    shown = groups.shown(catalogue.GROUPS)
    assert {place: count for place, count in shown.items() if count} == {
        ("classic", "Stable"): 1,
        ("consumer", "Reconciling"): 2,
    }
    assert shown.keys() == {(kind, state) for kind, states in STATES.items() for state in states}
    assert set(STATES["classic"]) == {phase.value for phase in Phase}


# --- rebalances -------------------------------------------------------------------------------------------------------


def test_changes_during_a_rebalance_belong_to_it() -> None:
    meter = RebalanceMeter()
    watch = Stopwatch(meter)
    watch.begin("billing", 10.0)
    watch.begin("billing", 12.0)
    assert (watch.complete("billing", 15.0), meter.begun, meter.durations.sum) == (5.0, 1, 5.0)
    assert watch.complete("billing", 16.0) is None
    watch.begin("billing", 20.0)
    watch.forget("billing")
    assert (meter.begun, meter.durations.count) == (2, 1)


def test_a_rebalance_of_a_consumer_group_lasts_until_everybody_has_what_it_was_given() -> None:
    world = World(orders=2)
    meter = world.consumer.meter
    first = world.join("one", "orders")
    assert (meter.begun, meter.durations.count) == (1, 1), "alone it has everything at once"
    second = world.join("two", "orders")
    assert (meter.begun, meter.durations.count) == (2, 1), "the second waits for the first to give something up"
    world.advance(2)
    revoking = world.beat("one", first.member_epoch)
    (kept,) = (world.held(revoking) or {}).values()
    world.advance(1)
    acknowledged = world.beat("one", revoking.member_epoch, owned={"orders": kept})
    assert meter.durations.count == 1
    world.beat("two", second.member_epoch)
    assert world.group().state == "Stable" and acknowledged.error_code == 0
    assert (meter.begun, meter.durations.count, meter.durations.sum) == (2, 2, 3.0)


def test_a_consumer_group_that_everybody_leaves_has_no_rebalance_under_way() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.join("two", "orders")
    world.leave("one")
    world.leave("two")
    assert world.group().state == "Empty"
    completed = world.consumer.meter.durations.count
    world.advance(60)
    world.join("three", "orders")
    assert world.consumer.meter.durations.count == completed + 1
    assert world.consumer.meter.durations.sum < 60


def test_rebalances_that_a_restart_replays_are_not_counted_again() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.restart()
    assert world.consumer.meter.begun == 0


# --- transactions -----------------------------------------------------------------------------------------------------


def test_open_transactions_are_counted_with_the_age_of_the_oldest() -> None:
    unfinished = [SimpleNamespace(started_ms=7_000), SimpleNamespace(started_ms=4_000)]
    machine = SimpleNamespace(unfinished=lambda: iter(unfinished))
    coordinator: Any = SimpleNamespace(runtime=SimpleNamespace(machines=lambda: [machine]))
    clock: Any = SimpleNamespace(now_ms=lambda: 9_500)

    def shown() -> tuple[Any, Any]:
        sources = transaction_sources(coordinator, clock)
        return tuple(list(sources[each]()) for each in (catalogue.TRANSACTIONS_OPEN, catalogue.TRANSACTION_AGE))  # type: ignore[return-value]

    assert shown() == ([((), 2)], [((), 5.5)])
    unfinished.clear()
    assert shown() == ([((), 0)], [((), 0.0)])
