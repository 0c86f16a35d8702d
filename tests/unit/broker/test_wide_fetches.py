"""Fetches of many partitions: each slice looks at a limited number of them, and the others go on in between."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from headpond.broker.handlers.fetch import sessions as fetch_sessions
from headpond.broker.handlers.fetch import wanted as fetch_open
from headpond.broker.handlers.fetch import wide as fetch_wide
from headpond.broker.handlers.fetch.read import FetchReader
from headpond.broker.handlers.fetch.session import FetchPartition
from headpond.broker.requests import letting_go, turns
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.frame import FrameReader
from headpond.protocol.schema.fetch import FetchRequest
from simulation.harness.turns import settle
from unit.broker.fetch_rig import FetchWorld, rows, run

MANY = 1_300
IN_ONE_SLICE = 500
UNKNOWN, SESSION_NOT_FOUND = 3, 70


def most(looked: Counter[tuple[str, int]], what: str) -> int:
    return max((count for (each, _), count in looked.items() if each == what), default=0)


def total(looked: Counter[tuple[str, int]], what: str) -> int:
    return sum(count for (each, _), count in looked.items() if each == what)


def test_a_wide_fetch_reads_a_limited_number_of_partitions_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        looked = world.watch_slices(monkeypatch)
        client = world.client()
        client.send(*range(2 * MANY), max_wait_ms=0)
        answer = await client.answer()
        assert [row.error_code for row in rows(answer).values()] == [0] * MANY + [UNKNOWN] * MANY
        assert total(looked, "read") == total(looked, "tell") == 2 * MANY
        assert most(looked, "read") <= IN_ONE_SLICE and most(looked, "tell") <= IN_ONE_SLICE

    run(test, partitions=MANY)


def test_a_small_request_of_a_wide_session_is_served_in_slices_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(*range(MANY), max_wait_ms=0, session_epoch=0)
        session_id = (await client.answer()).session_id
        assert session_id
        looked = world.watch_slices(monkeypatch)
        client.send(max_wait_ms=0, session_id=session_id, session_epoch=1)
        assert (await client.answer()).responses == []
        assert total(looked, "read") == MANY and most(looked, "read") <= IN_ONE_SLICE
        assert total(looked, "select") == MANY and most(looked, "select") <= IN_ONE_SLICE

    run(test, partitions=MANY)


def test_a_session_grows_and_shrinks_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(0, max_wait_ms=0, session_epoch=0)
        session_id = (await client.answer()).session_id
        looked = world.watch_slices(monkeypatch)
        client.send(*range(MANY), max_wait_ms=0, session_id=session_id, session_epoch=1)
        assert len(rows(await client.answer())) == MANY - 1
        forgotten = [FetchRequest.ForgottenTopic(topic="orders", partitions=[*range(1, MANY), *range(5_000)])]
        client.send(max_wait_ms=0, session_id=session_id, session_epoch=2, forgotten_topics_data=forgotten)
        assert (await client.answer()).error_code == 0
        assert most(looked, "add") <= IN_ONE_SLICE and most(looked, "forget") <= IN_ONE_SLICE
        assert total(looked, "forget") == MANY - 1 + 5_000
        assert world.sessions.size_bytes == 0, "the session has no partition left"

    run(test, partitions=MANY)


def test_a_wide_fetch_that_waits_is_woken_by_any_of_its_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        looked = world.watch_slices(monkeypatch)
        client = world.client()
        client.send(*range(MANY), max_wait_ms=60_000)
        await world.settle()
        assert client.answers() == [] and world.handler.parked_count == 1
        assert total(looked, "stand") == MANY and most(looked, "stand") <= IN_ONE_SLICE
        await world.append(MANY - 1)
        answer = await client.answer()
        assert [index for index, row in rows(answer).items() if row.records] == [MANY - 1]
        assert world.handler.parked_count == 0
        assert not any(replica.fetch_waiters for replica in world.replicas)
        assert client.transport.reading

    run(test, partitions=MANY)


def test_a_wide_fetch_is_not_late_for_what_comes_between_its_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        stand = fetch_wide.WideFetches._stand

        def slowly(*arguments: Any) -> Any:
            """Another batch arrives at a partition that was read already, before the fetch stands at it."""
            for partition, replica in enumerate(world.replicas):
                if partition == 0:
                    replica.partition.high_watermark = replica.partition.log.log_end_offset
            return stand(*arguments)

        monkeypatch.setattr(fetch_wide.WideFetches, "_stand", slowly)
        first = next(iter(world.replicas)).partition
        await world.append(0)
        first.high_watermark = 0
        client.send(*range(MANY), max_wait_ms=60_000)
        answer = await client.answer()
        assert rows(answer)[0].records

    run(test, partitions=MANY)


def test_a_wide_fetch_counts_what_comes_between_its_slices_towards_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        stand = fetch_wide.WideFetches._stand
        first = next(iter(world.replicas))
        await world.append(0)
        batch_bytes = first.partition.log.size_bytes
        first.partition.high_watermark = 0

        def slowly(*arguments: Any) -> Any:
            """A batch becomes visible at a partition that was read already."""
            first.partition.high_watermark = 1
            return stand(*arguments)

        monkeypatch.setattr(fetch_wide.WideFetches, "_stand", slowly)
        client.send(*range(MANY), max_wait_ms=60_000, min_bytes=2 * batch_bytes)
        await world.settle()
        assert client.answers() == []
        await world.append(1)
        assert [index for index, row in rows(await client.answer()).items() if row.records] == [0, 1]

    run(test, partitions=MANY)


def test_a_wide_fetch_that_nothing_comes_for_is_answered_when_its_time_is_up() -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(*range(MANY), max_wait_ms=60_000)
        await world.settle()
        world.clock.advance(59)
        await world.settle()
        assert client.answers() == []
        world.clock.advance(1)
        assert len(rows(await client.answer())) == MANY

    run(test, partitions=MANY)


def test_a_wide_fetch_whose_client_has_gone_stands_nowhere_any_more() -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(*range(MANY), max_wait_ms=60_000)
        await world.settle()
        client.connection.connection_lost(None)
        await world.settle()
        assert world.handler.parked_count == 0
        assert not any(replica.fetch_waiters for replica in world.replicas)

    run(test, partitions=MANY)


@pytest.mark.parametrize("weight_max", [1_000_000, 0], ids=["with room to park", "without"])
def test_a_wide_fetch_whose_client_has_gone_while_it_was_read_is_not_parked(
    weight_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(world: FetchWorld) -> None:
        monkeypatch.setattr("headpond.broker.replicas.parked_fetch.PARKED_WEIGHT_MAX", weight_max)
        tasks = len(world.rig.tasks)
        client = world.client()
        reading = asyncio.Event()
        read = FetchReader.read

        def note(*arguments: Any) -> None:
            reading.set()
            read(*arguments)

        monkeypatch.setattr(FetchReader, "read", note)
        client.send(*range(MANY), max_wait_ms=60_000)
        await reading.wait()
        client.connection.connection_lost(None)
        await world.settle()
        assert world.handler.parked_count == 0
        assert len(world.rig.tasks) == tasks

    run(test, partitions=MANY)


def test_wide_fetches_wait_undecoded_while_another_one_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        decoded = 0
        decode = fetch_open.decode_wide

        def count(frame: bytes, version: int) -> Any:
            nonlocal decoded
            decoded += 1
            return decode(frame, version)

        monkeypatch.setattr(fetch_wide, "decode_wide", count)
        clients = [world.client() for _ in range(3)]
        for client in clients:
            client.send(*range(MANY), max_wait_ms=0)
        for _ in range(20):  # the first one is in its slices, and the clock stands still
            await asyncio.sleep(0)
        assert decoded == 1
        await world.settle()
        assert [len(rows(client.answers()[0])) for client in clients] == [MANY] * 3
        assert decoded == 3

    run(test, partitions=MANY)


def test_a_wide_fetch_that_fails_at_its_turn_closes_its_own_connection_and_the_next_one_has_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(world: FetchWorld) -> None:
        clients = [world.client() for _ in range(3)]
        for client in clients:
            client.send(*range(MANY), max_wait_ms=0)
        keep = FrameReader.keep

        def fail_for_one(reader: FrameReader) -> bool:
            if reader is clients[1].connection._reader:
                raise OSError("a bug")
            return keep(reader)

        monkeypatch.setattr(FrameReader, "keep", fail_for_one)
        await world.settle()
        assert [len(client.answers()) for client in (clients[0], clients[2])] == [1, 1]
        assert [client.transport.closing for client in clients] == [False, True, False]

    run(test, partitions=MANY)


def test_others_are_served_while_a_wide_fetch_is_under_way() -> None:
    async def test(world: FetchWorld) -> None:
        wide, other = world.client(), world.client()
        wide.send(*range(MANY), max_wait_ms=0)
        await settle(10)
        other.send(0, max_wait_ms=0)
        assert len(other.answers()) == 1 and wide.answers() == []

    run(test, partitions=MANY)


def test_the_next_request_of_the_connection_waits_for_the_wide_one() -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(*range(MANY), max_wait_ms=0)
        assert not client.transport.reading
        await world.settle()
        assert client.transport.reading and len(client.answers()) == 1

    run(test, partitions=MANY)


def test_a_session_for_which_there_is_no_memory_is_answered_as_one_that_was_evicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(world: FetchWorld) -> None:
        monkeypatch.setattr("headpond.broker.handlers.fetch.sessions.SESSIONS_BYTES_MAX", 400 * MANY)
        client = world.client()
        client.send(*range(MANY), max_wait_ms=0, session_epoch=0)
        session_id = (await client.answer()).session_id
        client.send(*range(MANY), topic="more", max_wait_ms=0, session_id=session_id, session_epoch=1)
        assert (await client.answer()).error_code == SESSION_NOT_FOUND
        assert len(world.sessions) == 0
        client.send(*range(2 * MANY), max_wait_ms=0, session_epoch=0)
        answer = await client.answer()
        assert (answer.error_code, answer.session_id, len(rows(answer))) == (0, 0, 2 * MANY)

    run(test, partitions=MANY)


def test_a_fetch_in_another_isolation_level_than_there_are_is_refused_however_wide() -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(*range(MANY), isolation_level=2)
        answer = await client.answer()
        assert answer.error_code == -1 and len(rows(answer)) == MANY

    run(test)


def test_a_wide_fetch_that_is_malformed_closes_its_connection_only() -> None:
    async def test(world: FetchWorld) -> None:
        client, other = world.client(), world.client()
        body = bytes([0, 1, 0, 11]) + b"\x7f" * turns.LARGE_REQUEST_BYTES
        client.send_bytes(len(body).to_bytes(4, "big") + body)
        await world.settle()
        assert client.transport.closing and world.server.dropped_counts["malformed"] == 1
        other.send(*range(MANY), max_wait_ms=0)
        assert len(rows(await other.answer())) == MANY

    run(test)


def test_a_list_of_more_than_a_million_elements_is_malformed() -> None:
    turns.check_count(1_000_000)
    with pytest.raises(MalformedMessage):
        turns.check_count(1_000_001)


def test_a_wide_session_that_is_evicted_while_its_request_waits_for_a_turn_is_answered_as_gone() -> None:
    async def test(world: FetchWorld) -> None:
        client, other = world.client(), world.client()
        client.send(*range(MANY), max_wait_ms=0, session_epoch=0)
        session_id = (await client.answer()).session_id
        other.send(*range(MANY), max_wait_ms=0)
        client.send(max_wait_ms=0, session_id=session_id, session_epoch=1)
        world.sessions.drop(session_id)
        assert (await client.answer()).error_code == SESSION_NOT_FOUND
        assert client.transport.reading and len(other.answers()) == 1

    run(test, partitions=MANY)


@pytest.mark.parametrize("what", ["partitions", "forgotten"])
def test_a_session_that_is_evicted_while_it_grows_or_shrinks_is_answered_as_gone(what: str) -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(0, max_wait_ms=0, session_epoch=0)
        session_id = (await client.answer()).session_id
        if what == "partitions":
            client.send(*range(MANY), max_wait_ms=0, session_id=session_id, session_epoch=1)
        else:
            forgotten = [FetchRequest.ForgottenTopic(topic="orders", partitions=list(range(1, 5_000)))]
            client.send(max_wait_ms=0, session_id=session_id, session_epoch=1, forgotten_topics_data=forgotten)
        for _ in range(20):  # it is in its slices, and the clock stands still
            await asyncio.sleep(0)
        world.sessions.drop(session_id)
        assert (await client.answer()).error_code == SESSION_NOT_FOUND
        assert world.sessions.size_bytes == 0

    run(test, partitions=MANY)


@pytest.mark.parametrize("what", ["known", "no session", "unknown session", "no isolation level", "dropped", "gone"])
def test_what_a_wide_fetch_asked_for_is_freed_in_slices(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        client, freed = world.client(), Counter[int]()

        class Asked(FetchPartition):
            def __del__(self) -> None:
                freed[world.turn] += 1

        fields: dict[str, Any] = {"max_wait_ms": 0}
        if what == "known":
            client.send(*range(MANY), max_wait_ms=0, session_epoch=0)
            fields |= {"session_id": (await client.answer()).session_id, "session_epoch": 1}
        monkeypatch.setattr(fetch_open, "FetchPartition", Asked)
        for module in (letting_go, fetch_sessions):
            monkeypatch.setattr(module, "DROPPED_AT_ONCE", IN_ONE_SLICE)
        if what == "unknown session":
            fields |= {"session_id": 77, "session_epoch": 1}
        elif what == "no isolation level":
            fields["isolation_level"] = 2
        elif what == "dropped":
            fields["session_epoch"] = 0
        elif what == "gone":
            fields["max_wait_ms"] = 60_000
        client.send(*range(MANY), **fields)
        await world.settle()
        if what == "dropped":
            world.sessions.drop(client.answers()[0].session_id)
        elif what == "gone":
            client.connection.connection_lost(None)
        await world.settle()
        assert freed.total() == MANY and max(freed.values()) <= IN_ONE_SLICE

    run(test, partitions=MANY)
