"""ListTransactions: which ones a filter keeps."""

from __future__ import annotations

from headpond.coordination.slices import finish_now
from headpond.coordination.transactions.listing import Filters, parse_states
from headpond.coordination.transactions.state import TransactionState
from unit.coordination.transaction_world import World


def names(world: World, filters: Filters) -> list[str]:
    return [each.transactional_id for each in finish_now(world.machine.list(filters))]


def some() -> World:
    world = World()
    world.started("idle")
    world.add(world.started("long"), name="long")
    world.clock.advance(5)
    world.add(world.started("short"), name="short")
    world.clock.advance(1)
    return world


def test_without_filters_all_are_told_with_id_and_state() -> None:
    world = some()
    told = [(each.transactional_id, each.transaction_state) for each in finish_now(world.machine.list(Filters()))]
    assert told == [("idle", "Empty"), ("long", "Ongoing"), ("short", "Ongoing")]


def test_by_state() -> None:
    assert parse_states({}) == (None, [])
    assert parse_states({"Ongoing": 1, "ongoing": 2, "Prepare": 1}) == (
        frozenset({TransactionState.ONGOING}),
        ["ongoing", "Prepare"],
    )
    world = some()
    assert names(world, Filters(states=parse_states({"Ongoing": 1})[0])) == ["long", "short"]
    assert names(world, Filters(states=parse_states({"Nonsense": 1})[0])) == []
    assert names(world, Filters(states=parse_states({"Dead": 1, "PrepareEpochFence": 1})[0])) == []


def test_every_state_is_known_by_kafkas_name() -> None:
    labels = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
    labels += ["Dead", "PrepareEpochFence"]
    assert [state.label for state in TransactionState] == labels


def test_by_producer_id() -> None:
    world = some()
    wanted = world.machine.describe("short").producer_id
    assert names(world, Filters(producer_ids=frozenset({wanted, 7}))) == ["short"]


def test_by_duration_those_that_began_longer_ago_and_those_that_never_did() -> None:
    world = some()
    assert names(world, Filters(duration_ms=6_000)) == ["idle"]
    assert names(world, Filters(duration_ms=5_999)) == ["idle", "long"]
    assert names(world, Filters(duration_ms=0)) == ["idle", "long", "short"]
