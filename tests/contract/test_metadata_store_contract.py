"""What every ``MetadataStore`` adapter promises, run against the embedded store and the simulated one."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from headpond.model import InvariantBroken
from headpond.ports import (
    STORE_OPERATIONS_MAX,
    STORE_REQUEST_BYTES_MAX,
    Change,
    Changes,
    Committed,
    Compare,
    Conflict,
    Delete,
    Entry,
    HistoryLost,
    LeaseLost,
    MetadataStore,
    Put,
)
from headpond.runtime.metastore_sqlite import SqliteMetadataStore
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import SimulatedMetadataStore, StoreServer

HISTORY_REVISIONS_MAX = 20


class World:
    """Opens stores of one kind over the same data, as several processes would."""

    def __init__(self, kind: str, folder: pathlib.Path) -> None:
        self._kind = kind
        self._path = f"{folder}/metadata.sqlite"
        self.clock = ManualClock()
        self._server = StoreServer(self.clock, history_revisions_max=HISTORY_REVISIONS_MAX)
        self._opened: list[MetadataStore] = []

    async def open(self) -> MetadataStore:
        store: MetadataStore
        if self._kind == "simulated":
            store = SimulatedMetadataStore(self._server, self.clock)
        else:
            store = await SqliteMetadataStore.open(self._path, self.clock, history_revisions_max=HISTORY_REVISIONS_MAX)
        self._opened.append(store)
        return store

    async def close(self) -> None:
        for store in self._opened:
            await store.close()

    async def pass_time(self, seconds: float) -> None:
        """Move the clock in small steps, letting every store do what is due in between."""
        for _ in range(max(1, round(seconds / 0.1))):
            self.clock.advance(min(seconds, 0.1))
            for store in self._opened:  # a call makes the round trip through a store's thread
                await store.get("none")


Scenario = Callable[[World, MetadataStore], Awaitable[None]]


@pytest.fixture(params=["embedded", "simulated"])
def run(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Callable[[Scenario], None]:
    def go(scenario: Scenario) -> None:
        async def main() -> None:
            world = World(request.param, tmp_path)
            try:
                async with asyncio.timeout(20):
                    await scenario(world, await world.open())
            finally:
                await world.close()

        asyncio.run(main())

    return go


async def take(changes: AsyncIterator[Changes], count: int) -> list[Changes]:
    return [await anext(changes) for _ in range(count)]


async def put(store: MetadataStore, key: str, value: bytes, lease: int | None = None) -> int:
    outcome = await store.transact([], [Put(key, value, lease)])
    assert isinstance(outcome, Committed)
    return outcome.revision


def test_an_empty_store_has_revision_zero_and_no_entries(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        assert await store.get("missing") is None
        assert await store.list("") == (0, ())

    run(scenario)


def test_a_transaction_gives_all_its_writes_one_revision(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        assert await store.transact([], [Put("a", b"1"), Put("b", b"2")]) == Committed(1)
        assert await store.transact([], [Put("b", b"3"), Delete("a"), Put("c", b"")]) == Committed(2)
        assert await store.get("a") is None
        assert await store.get("b") == Entry("b", b"3", 1, 2)
        assert await store.get("c") == Entry("c", b"", 2, 2)

    run(scenario)


def test_a_key_made_again_has_a_new_creation(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        await put(store, "a", b"1")
        await store.transact([], [Delete("a")])
        await put(store, "a", b"2")
        assert await store.get("a") == Entry("a", b"2", 3, 3)

    run(scenario)


def test_what_changes_nothing_gets_no_revision(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        await put(store, "a", b"1")
        assert await store.transact([Compare("a", 1)], []) == Committed(1)
        assert await store.transact([], [Delete("missing")]) == Committed(1)
        assert await store.transact([], []) == Committed(1)
        assert await store.transact([], [Put("a", b"1")]) == Committed(2)  # the same value is a change all the same

    run(scenario)


def test_a_listing_is_sorted_and_keeps_to_its_prefix(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        keys = ["t/b", "t/a", "t", "u", "t/", "t0", "t/\U0010ffff", "t/ä", "s"]
        await store.transact([], [Put(key, key.encode()) for key in keys])
        listing = await store.list("t/")
        assert listing.revision == 1
        assert [entry.key for entry in listing.entries] == ["t/", "t/a", "t/b", "t/ä", "t/\U0010ffff"]
        assert [entry.key for entry in (await store.list("")).entries] == sorted(keys)

    run(scenario)


def test_compares_decide_over_all_writes(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        await put(store, "a", b"1")
        await put(store, "b", b"1")
        stale = [Compare("a", 1), Compare("b", 1), Compare("missing", 0)]
        outcome = await store.transact(stale, [Put("a", b"2"), Put("new", b"")])
        assert outcome == Conflict(2, (Entry("a", b"1", 1, 1), Entry("b", b"1", 2, 2)))
        assert await store.get("new") is None
        fresh = [Compare("a", 1), Compare("b", 2), Compare("missing", 0)]
        assert await store.transact(fresh, [Put("a", b"2"), Put("new", b"")]) == Committed(3)

    run(scenario)


def test_a_key_that_must_not_exist_is_created_once(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        other = await world.open()
        outcomes = await asyncio.gather(
            *(each.transact([Compare("one", 0)], [Put("one", b"x")]) for each in (store, other) * 5)
        )
        assert [type(outcome) for outcome in outcomes].count(Committed) == 1

    run(scenario)


def test_the_creation_revision_fences_a_key_that_was_made_again(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        await put(store, "leader", b"first")
        await put(store, "leader", b"first, later")
        assert await store.transact([Compare("leader", 1, "create")], [Put("x", b"")]) == Committed(3)
        await store.transact([], [Delete("leader")])
        await put(store, "leader", b"second")
        outcome = await store.transact([Compare("leader", 1, "create")], [Put("x", b"")])
        assert outcome == Conflict(5, (Entry("leader", b"second", 5, 5),))
        assert isinstance(await store.transact([Compare("leader", 0, "create")], []), Conflict)

    run(scenario)


def test_a_watch_replays_history_and_goes_on_with_what_happens(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        await put(store, "t/1", b"a")
        await put(store, "t/2", b"b")
        watch = store.watch("t/", after_revision=1)
        assert await anext(watch) == Changes(2, (Change("t/2", b"b", 2),))
        await store.transact([], [Put("t/3", b"c"), Put("elsewhere", b""), Delete("t/1")])
        await put(store, "elsewhere", b"again")
        await put(store, "t/4", b"d")
        assert await take(watch, 2) == [
            Changes(3, (Change("t/3", b"c", 3), Change("t/1", None, 3))),
            Changes(5, (Change("t/4", b"d", 5),)),
        ]

    run(scenario)


def test_a_watch_waits_for_the_first_change_when_there_is_none_yet(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        watch = store.watch("", after_revision=0)
        first = asyncio.ensure_future(anext(watch))
        await store.get("a")
        assert not first.done()
        await put(store, "a", b"1")
        assert await first == Changes(1, (Change("a", b"1", 1),))

    run(scenario)


def test_watchers_of_other_processes_see_every_commit_in_order(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        other = await world.open()
        watches = [store.watch("", after_revision=0), other.watch("", after_revision=0)]
        seen = [asyncio.ensure_future(take(watch, 10)) for watch in watches]
        for number in range(10):
            await put((store, other)[number % 2], f"k{number}", b"%d" % number)
        await world.pass_time(0.5)
        expected = [Changes(n + 1, (Change(f"k{n}", b"%d" % n, n + 1),)) for n in range(10)]
        assert await asyncio.gather(*seen) == [expected, expected]

    run(scenario)


def test_a_watch_from_forgotten_history_says_so(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        for number in range(HISTORY_REVISIONS_MAX + 5):
            await put(store, "a", b"%d" % number)
        with pytest.raises(HistoryLost):
            await anext(store.watch("", after_revision=1))
        listing = await store.list("")
        assert listing.revision == HISTORY_REVISIONS_MAX + 5
        late = await anext(store.watch("", after_revision=listing.revision - 3))
        assert late.revision == listing.revision - 2

    run(scenario)


def test_a_watch_from_a_revision_that_the_store_never_had_says_so(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        await put(store, "a", b"")
        with pytest.raises(HistoryLost):
            await anext(store.watch("", after_revision=7))

    run(scenario)


def test_a_cancelled_watch_leaves_the_others_alone(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        doomed = asyncio.ensure_future(anext(store.watch("", after_revision=0)))
        other = store.watch("", after_revision=0)
        waiting = asyncio.ensure_future(anext(other))
        await store.get("a")
        doomed.cancel()
        await asyncio.gather(doomed, return_exceptions=True)
        await put(store, "a", b"1")
        assert (await waiting).revision == 1

    run(scenario)


def test_closing_ends_the_watches_and_refuses_calls(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        async def follow() -> list[Changes]:
            return [changes async for changes in store.watch("", after_revision=0)]

        following = asyncio.ensure_future(follow())
        await put(store, "a", b"1")
        await store.get("a")
        await store.close()
        await store.close()
        assert await following == [Changes(1, (Change("a", b"1", 1),))]
        with pytest.raises(RuntimeError):
            await store.get("a")

    run(scenario)


def test_a_lease_that_runs_out_takes_its_keys_with_it_in_one_revision(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        lease = await store.grant_lease(1_000)
        await store.transact([], [Put("brokers/1", b"x", lease), Put("also", b"y", lease), Put("stays", b"z")])
        await world.pass_time(0.8)
        assert await store.get("brokers/1") is not None
        await world.pass_time(0.5)
        assert await store.list("") == (2, (Entry("stays", b"z", 1, 1),))
        assert await anext(store.watch("", after_revision=1)) == Changes(
            2, (Change("also", None, 2), Change("brokers/1", None, 2))
        )
        assert not await store.keep_lease(lease)

    run(scenario)


def test_a_lease_lasts_as_long_as_it_is_kept(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        lease = await store.grant_lease(1_000)
        await put(store, "a", b"", lease)
        for _ in range(5):
            await world.pass_time(0.7)
            assert await store.keep_lease(lease)
        assert await store.get("a") is not None

    run(scenario)


def test_other_processes_see_a_lease_run_out_after_its_owner_is_gone(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        owner = await world.open()
        lease = await owner.grant_lease(1_000)
        await put(owner, "brokers/2", b"", lease)
        watch = store.watch("brokers/", after_revision=1)
        gone = asyncio.ensure_future(anext(watch))
        await store.get("a")
        await world.pass_time(1.5)
        assert await gone == Changes(2, (Change("brokers/2", None, 2),))

    run(scenario)


def test_a_revoked_lease_takes_its_keys_at_once(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        lease = await store.grant_lease(60_000)
        await put(store, "a", b"", lease)
        await store.revoke_lease(lease)
        await store.revoke_lease(lease)
        assert await store.list("") == (2, ())
        assert not await store.keep_lease(lease)

    run(scenario)


def test_a_key_written_again_without_the_lease_outlives_it(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        lease = await store.grant_lease(60_000)
        await put(store, "a", b"1", lease)
        await put(store, "a", b"2")
        await store.revoke_lease(lease)
        assert await store.get("a") == Entry("a", b"2", 1, 2)

    run(scenario)


def test_a_write_under_a_lease_that_has_run_out_changes_nothing(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        lease = await store.grant_lease(100)
        await world.pass_time(0.3)
        with pytest.raises(LeaseLost):
            await store.transact([], [Put("a", b""), Put("b", b"", lease)])
        with pytest.raises(LeaseLost):
            await store.transact([], [Put("b", b"", 4711)])
        assert await store.list("") == (0, ())

    run(scenario)


def test_leases_are_never_given_out_twice(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        other = await world.open()
        first = await store.grant_lease(1_000)
        await store.revoke_lease(first)
        assert len({first, await store.grant_lease(1_000), await other.grant_lease(1_000)}) == 3

    run(scenario)


def test_the_limits_of_a_transaction_are_enforced(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        most = [Put(f"k{n}", b"") for n in range(STORE_OPERATIONS_MAX)]
        assert await store.transact([], most) == Committed(1)
        with pytest.raises(InvariantBroken):
            await store.transact([Compare("k0", 1)], most)
        with pytest.raises(InvariantBroken):
            await store.transact([], [Put("big", bytes(STORE_REQUEST_BYTES_MAX))])
        with pytest.raises(InvariantBroken):
            await store.transact([], [Put("a", b"1"), Delete("a")])
        with pytest.raises(InvariantBroken):
            await store.transact([], [Put("", b"1")])
        assert (await store.list("")).revision == 1
        assert await store.transact([], [Put("big", bytes(STORE_REQUEST_BYTES_MAX - 3))]) == Committed(2)

    run(scenario)


def test_everything_committed_is_there_for_the_next_process(run: Callable[[Scenario], None]) -> None:
    async def scenario(world: World, store: MetadataStore) -> None:
        lease = await store.grant_lease(5_000)
        await store.transact([], [Put("a", b"\0\xff"), Put("b", b"2", lease)])
        await put(store, "a", b"3")
        await store.close()
        again = await world.open()
        assert await again.list("") == (2, (Entry("a", b"3", 1, 2), Entry("b", b"2", 1, 1)))
        assert await again.keep_lease(lease)
        assert (await anext(again.watch("", after_revision=1))).revision == 2
        assert await put(again, "c", b"") == 3

    run(scenario)
