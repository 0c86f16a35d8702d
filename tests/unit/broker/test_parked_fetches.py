"""Long polls: who waits, who is held back, and who pays when there are many."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from headpond.broker.handlers.fetch.read import FetchReader
from headpond.broker.replicas.parked_fetch import ParkedFetch
from headpond.broker.replicas.replicas import FETCHES_PER_SLICE, Replica
from simulation.harness.turns import settle
from unit.broker.fetch_rig import WAIT_MS_MAX, FetchWorld, rows, run

FOREVER_MS = 0x7FFFFFFF


def test_a_connections_next_long_poll_waits_for_the_one_before_and_for_nobody_elses() -> None:
    async def test(world: FetchWorld) -> None:
        greedy, other = world.client(), world.client()
        greedy.send(0, max_wait_ms=FOREVER_MS)
        greedy.send(0, max_wait_ms=FOREVER_MS)
        other.send(0, max_wait_ms=500)
        await world.settle()
        assert world.handler.parked_count == 2, "one of each connection"
        assert not greedy.transport.reading
        assert other.answers() == [], "it waits, as it asked"
        await world.append(0)
        await world.settle()
        assert len(greedy.answers()) == 2 and len(other.answers()) == 1
        assert greedy.transport.reading and world.handler.parked_count == 0

    run(test)


def test_when_the_room_is_used_up_a_fetch_of_many_partitions_still_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither at its partitions nor in vain: it is answered when its time is up, and never before."""

    async def test(world: FetchWorld) -> None:
        monkeypatch.setattr("headpond.broker.replicas.parked_fetch.PARKED_WEIGHT_MAX", 0)
        for count in (200, 1_000):
            client = world.client()
            client.send(*range(count), max_wait_ms=500)
            await world.settle()
            assert not any(replica.fetch_waiters for replica in world.replicas)
            assert client.answers() == [] and not client.transport.reading
            world.clock.advance(0.5)
            assert len(rows(await client.answer())) == count
            assert client.transport.reading

    run(test, partitions=1_000)


def test_when_the_room_is_used_up_a_fetch_of_few_partitions_is_woken_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        monkeypatch.setattr("headpond.broker.replicas.parked_fetch.PARKED_WEIGHT_MAX", 0)
        client = world.client()
        client.send(0)
        await world.append(0)
        await world.settle()
        assert len(client.answers()) == 1

    run(test)


@pytest.mark.parametrize("count", [200, 1_000])
def test_a_late_answer_has_one_batch_at_most_as_it_is_kept_for_so_long(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(world: FetchWorld) -> None:
        monkeypatch.setattr("headpond.broker.replicas.parked_fetch.PARKED_WEIGHT_MAX", 0)
        for partition in (3, 4, 4, 7):
            await world.append(partition)
        client = world.client()
        client.send(*range(count), max_wait_ms=500, min_bytes=1_000_000)
        await world.settle()
        assert client.answers() == []
        world.clock.advance(0.5)
        answered = rows(await client.answer())
        assert len(answered) == count
        assert [index for index, row in answered.items() if row.records] == [3]

    run(test, partitions=1_000)


def test_a_client_that_leaves_takes_its_late_answers_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        monkeypatch.setattr("headpond.broker.replicas.parked_fetch.PARKED_WEIGHT_MAX", 0)
        for count in (200, 1_000):
            client = world.client()
            client.send(*range(count), max_wait_ms=500)
            await world.settle()
            client.connection.connection_lost(None)
            await world.settle()
            world.clock.advance(0.5)
            await world.settle()
            assert not client.transport.written

    run(test, partitions=1_000)


def test_a_fetch_waits_as_long_as_a_silent_connection_may_live_and_no_longer() -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(0, max_wait_ms=FOREVER_MS)
        world.clock.advance(WAIT_MS_MAX / 1_000 - 1)
        assert client.answers() == []
        world.clock.advance(1)
        assert len(client.answers()) == 1

    run(test)


def test_a_fetch_that_wants_many_bytes_counts_what_its_partitions_get() -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(0, 1, min_bytes=200, max_wait_ms=60_000)
        await world.append(0)
        await world.append(1)
        await world.settle()
        assert client.answers() == []
        await world.append(0)
        await world.settle()
        (answer,) = client.answers()
        assert sum(len(row.records or b"") for row in rows(answer).values()) >= 200

    run(test, partitions=2)


@pytest.mark.parametrize("others", [0, 1_000])
def test_what_was_appended_before_the_fetch_and_is_flushed_after_it_counts(others: int) -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        await world.append(0)
        log = await world.append_only(0)
        batch_bytes = log.size_bytes // 2
        client.send(0, *range(1, 1 + others), min_bytes=2 * batch_bytes, max_wait_ms=60_000)
        await world.settle()
        if others == 0:
            assert log.flushed_end_offset == log.log_end_offset, "whoever waits makes the flush come soon"
        (answer,) = client.answers()
        assert len(rows(answer)[0].records or b"") == 2 * batch_bytes

    run(test, partitions=1 + others)


def test_a_fetch_that_wants_many_bytes_does_not_read_before_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        await world.append(0)
        await world.append(1)
        reads = 0
        read = FetchReader.read

        def count(*arguments: Any) -> Any:
            nonlocal reads
            reads += 1
            return read(*arguments)

        monkeypatch.setattr(FetchReader, "read", count)
        client = world.client()
        batch_bytes = next(iter(world.replicas)).partition.log.size_bytes
        client.send(0, 1, min_bytes=6 * batch_bytes, max_wait_ms=60_000)
        for partition in (0, 1, 1):
            await world.append(partition)
            await world.settle()
        assert (reads, client.answers()) == (1, [])
        await world.append(0)
        await world.settle()
        assert reads == 2 and len(client.answers()) == 1

    run(test, partitions=2)


def test_a_fetch_that_wants_many_bytes_counts_those_that_no_producer_sent() -> None:
    """A coordinator's, or a transaction's marker."""

    async def test(world: FetchWorld) -> None:
        await world.append(0)
        replica = next(iter(world.replicas))
        client = world.client()
        client.send(0, min_bytes=2 * replica.partition.log.size_bytes, max_wait_ms=60_000)
        await world.settle()
        appended_bytes = replica.appended_bytes
        await world.append(0)
        assert replica.appended_bytes == appended_bytes
        await world.settle()
        assert len(client.answers()) == 1

    run(test)


def test_many_fetches_at_one_partition_are_woken_some_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        woken: Counter[int] = Counter()
        news = ParkedFetch.news

        def count(parked: ParkedFetch, replica: Replica) -> None:
            woken[world.turn] += 1
            news(parked, replica)

        monkeypatch.setattr(ParkedFetch, "news", count)
        clients = [world.client() for _ in range(3 * FETCHES_PER_SLICE)]
        for client in clients:
            client.send(0, max_wait_ms=60_000)
        await world.append(0)
        await world.settle()
        assert [len(client.answers()) for client in clients] == [1] * len(clients)
        assert sum(woken.values()) == len(clients) and max(woken.values()) <= 100

    run(test)


def test_news_of_a_partition_with_many_fetches_are_told_once_for_all_that_came_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(world: FetchWorld) -> None:
        told = 0

        def count(parked: ParkedFetch, replica: Replica) -> None:
            nonlocal told
            told += 1

        monkeypatch.setattr(ParkedFetch, "news", count)
        clients = [world.client() for _ in range(2 * FETCHES_PER_SLICE)]
        for client in clients:
            client.send(0, max_wait_ms=60_000)
        replica = next(iter(world.replicas))
        for _ in range(50):
            replica.tell_fetchers()
        await settle(20)
        assert told == len(clients)

    run(test)
