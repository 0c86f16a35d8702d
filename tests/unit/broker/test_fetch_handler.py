"""Fetch requests, from the frame to the answer: what a session reads, who is woken, what is left behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headpond.broker.handlers.fetch import wide as fetch_wide
from headpond.broker.handlers.fetch.read import FetchReader
from headpond.broker.replicas.replicas import FETCHES_PER_SLICE, Replica
from headpond.cluster.delta import Delta, PartitionChange
from headpond.cluster.rows import PartitionState
from headpond.model import TopicPartition
from headpond.protocol.schema.fetch import FetchRequest, FetchResponse
from simulation.harness.turns import settle
from unit.broker.fetch_rig import LED, FetchClient, FetchWorld, rows, run
from unit.storage.storage_rig import TOPIC_ID

FEW, MANY = 100, 1_300
FOREVER_MS = 60_000
DEBUGGING_CONSUMER = -2
OUT_OF_RANGE, UNKNOWN, NOT_LEADER, SESSION_NOT_FOUND, WRONG_EPOCH = 1, 3, 6, 70, 71


class Session:
    """A consumer that has been told all that there is to tell of the first partitions."""

    def __init__(self, world: FetchWorld, count: int) -> None:
        self.world, self.client, self.count = world, world.client(), count
        self.epoch = 0

    async def opened(self) -> Session:
        self.client.send(*range(self.count), max_wait_ms=0, session_epoch=0, max_bytes=1 << 20)
        answer = await self.client.answer()
        self.id = answer.session_id
        assert self.id
        for _ in range(2):
            self.send(max_wait_ms=0)
            assert (await self.client.answer()).error_code == 0
        return self

    def send(self, *named: tuple[int, int], **fields: Any) -> None:
        """``named``: partitions and fetch offsets."""
        self.epoch += 1
        wanted = [
            FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1_000)
            for index, offset in named
        ]
        topics = [FetchRequest.FetchTopic(topic="orders", partitions=wanted)] if wanted else []
        fields = {"topics": topics, "session_id": self.id, "session_epoch": self.epoch, "max_bytes": 1 << 20, **fields}
        self.client.send(**fields)


def records(answer: FetchResponse) -> list[int]:
    """The partitions that brought some."""
    return [index for index, row in rows(answer).items() if row.records]


def replica(world: FetchWorld, partition: int = 0) -> Replica:
    found = world.replicas.get(TopicPartition("orders", partition))
    assert found is not None
    return found


async def append_now(world: FetchWorld, partition: int) -> None:
    """Flushed before the loop turns."""
    log = await world.append_only(partition)
    log.end_flush(log.begin_flush())  # type: ignore[arg-type]


def one(client: FetchClient) -> FetchResponse:
    (answer,) = client.answers()
    return answer


class Read:
    """Counts the partitions that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read = FetchReader.read

        def counted(reader: FetchReader, fetch: Any, wanted_now: Any, reading: Any) -> Any:
            wanted = list(wanted_now)
            self.count += len(wanted)
            return read(reader, fetch, wanted, reading)

        monkeypatch.setattr(FetchReader, "read", counted)


# --- without a session


def test_what_is_there_is_answered_at_once() -> None:
    async def test(world: FetchWorld) -> None:
        await world.append(0)
        client = world.client()
        client.send(0, 1, max_wait_ms=FOREVER_MS)
        answer = one(client)
        assert records(answer) == [0] and rows(answer)[0].high_watermark == 1
        assert world.handler.parked_count == 0

    run(test, partitions=2)


def test_an_error_is_answered_at_once_and_costs_its_neighbours_nothing() -> None:
    async def test(world: FetchWorld) -> None:
        await world.append(0)
        client = world.client()
        client.send(7, 0, max_wait_ms=FOREVER_MS)
        answer = one(client)
        assert {index: row.error_code for index, row in rows(answer).items()} == {0: 0, 7: UNKNOWN}
        assert records(answer) == [0]

    run(test)


def test_a_fetch_of_nothing_is_answered_at_once() -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(max_wait_ms=FOREVER_MS)
        assert one(client).responses == []

    run(test)


def test_a_fetch_that_waits_is_woken_by_the_flush_and_not_by_the_append() -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(0, max_wait_ms=FOREVER_MS)
        log = await world.append_only(0)
        assert client.answers() == [] and world.handler.parked_count == 1
        await world.until(asyncio.ensure_future(log.flush()))
        assert records(one(client)) == [0] and world.handler.parked_count == 0

    run(test)


@pytest.mark.parametrize("min_bytes", [1, 1_000_000])
def test_who_does_not_want_to_wait_waits_for_the_flush_of_what_was_acknowledged(min_bytes: int) -> None:
    async def test(world: FetchWorld) -> None:
        await world.append(0)
        await world.append(0)
        log = await world.append_only(0)
        client = world.client()
        wanted = [FetchRequest.FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=1_000)]
        topics = [FetchRequest.FetchTopic(topic="orders", partitions=wanted)]
        client.send(topics=topics, max_wait_ms=0, min_bytes=min_bytes)
        assert client.answers() == []
        await world.until(asyncio.ensure_future(log.flush()))
        assert records(one(client)) == [0]

    run(test)


# --- sessions: what is read


def test_a_request_of_a_session_reads_what_has_changed_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, FEW).opened()
        read = Read(monkeypatch)
        session.send(max_wait_ms=FOREVER_MS)
        assert read.count == 0 and world.handler.parked_count == 1
        await world.append(7)
        assert records(one(session.client)) == [7] and read.count == 1
        session.send((7, 1), max_wait_ms=FOREVER_MS)
        assert read.count == 2 and world.handler.parked_count == 1

    run(test, partitions=FEW)


def test_what_changed_between_two_requests_is_found_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, FEW).opened()
        for partition in (5, 3, 5):
            await world.append(partition)
        read = Read(monkeypatch)
        session.send(max_wait_ms=FOREVER_MS)
        assert records(one(session.client)) == [3, 5], "in the session's order"
        assert read.count == 2

    run(test, partitions=FEW)


def test_a_session_that_nobody_fetches_for_hears_of_a_partition_once() -> None:
    async def test(world: FetchWorld) -> None:
        await Session(world, 2).opened()
        assert len(replica(world).watchers) == 1
        await world.append(0)
        assert not replica(world).watchers and replica(world, 1).watchers
        assert not replica(world).is_awaited

    run(test, partitions=2)


def test_a_quiet_partition_that_is_not_flushed_yet_is_waited_for() -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, FEW).opened()
        log = await world.append_only(9)
        session.send(max_wait_ms=0)
        assert session.client.answers() == []
        await world.until(asyncio.ensure_future(log.flush()))
        assert records(one(session.client)) == [9]

    run(test, partitions=FEW)


def test_who_may_see_more_than_others_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, FEW).opened()
        await world.append_only(9)
        read = Read(monkeypatch)
        session.send(max_wait_ms=0, replica_id=DEBUGGING_CONSUMER)
        assert records(one(session.client)) == [9] and read.count == FEW

    run(test, partitions=FEW)


def test_a_moved_log_start_and_a_new_epoch_are_told_by_the_next_request_and_wake_nobody() -> None:
    async def test(world: FetchWorld) -> None:
        await world.append(0)
        session = await Session(world, 2).opened()
        session.send((0, 1), max_wait_ms=0)
        session.send(max_wait_ms=0)
        assert [rows(answer) for answer in session.client.answers()] == [{}, {}]
        session.send(max_wait_ms=500)
        await world.until(asyncio.ensure_future(replica(world).partition.log.advance_log_start(1)))
        assert session.client.answers() == []
        world.clock.advance(0.5)
        assert rows(one(session.client))[0].log_start_offset == 1
        newer = PartitionState(leader=1, leader_epoch=4, partition_epoch=4, replicas=(1,), isr=(1,))
        world.replicas.apply(Delta(2, partitions=(PartitionChange("orders", TOPIC_ID, 0, LED, newer),)))
        assert replica(world, 1).watchers and not replica(world).watchers

    run(test, partitions=2)


# --- sessions: who is woken


@pytest.mark.parametrize("what", ["deleted", "led elsewhere"])
def test_a_fetch_of_a_session_learns_at_once_that_a_partition_is_gone(what: str) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, FEW).opened()
        session.send(max_wait_ms=FOREVER_MS)
        after = None
        if what == "led elsewhere":
            after = PartitionState(leader=2, leader_epoch=1, partition_epoch=1, replicas=(1, 2), isr=(2,))
        changes = [PartitionChange("orders", TOPIC_ID, n, LED, after) for n in (3, 4)]
        world.replicas.apply(Delta(2, partitions=tuple(changes)))
        code = NOT_LEADER if after is not None else UNKNOWN
        told = {index: row.error_code for index, row in rows(one(session.client)).items()}
        assert told == ({3: code, 4: code} if after is None else {3: code})
        session.send(max_wait_ms=FOREVER_MS)
        assert {index: row.error_code for index, row in rows(one(session.client)).items()} == {3: code, 4: code}

    run(test, partitions=FEW)


def test_a_fetch_that_wants_many_bytes_counts_those_of_quiet_partitions_and_reads_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, FEW).opened()
        await world.append(0)
        batch_bytes = replica(world).partition.log.size_bytes
        read = Read(monkeypatch)
        session.send((0, 1), max_wait_ms=FOREVER_MS, min_bytes=4 * batch_bytes)
        assert read.count == 1
        for partition in (1, 2, 1):
            await world.append(partition)
        assert session.client.answers() == [] and read.count == 1
        await world.append(3)
        assert records(one(session.client)) == [1, 2, 3]
        assert read.count == 5, "what has changed, once more"

    run(test, partitions=FEW)


def test_many_sessions_at_one_partition_know_at_once_and_are_answered_some_in_each_turn() -> None:
    async def test(world: FetchWorld) -> None:
        waiting = [await Session(world, 2).opened() for _ in range(2 * FETCHES_PER_SLICE)]
        idle = await Session(world, 2).opened()
        for session in waiting:
            session.send(max_wait_ms=FOREVER_MS)
        await append_now(world, 0)
        idle.send(max_wait_ms=0)
        assert records(one(idle.client)) == [0], "not when its turn comes"
        assert not any(session.client.answers() for session in waiting)
        await asyncio.sleep(0)
        await settle(3)
        assert sum(bool(session.client.answers()) for session in waiting) in (FETCHES_PER_SLICE, 2 * FETCHES_PER_SLICE)
        await settle(10)
        assert world.handler.parked_count == 0

    run(test, partitions=2)


# --- large sessions


def test_a_large_session_with_little_news_is_served_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, MANY).opened()

        def wide(*arguments: Any) -> Any:
            raise AssertionError("not in slices")

        monkeypatch.setattr(fetch_wide.WideFetches, "serve", wide)
        session.send(max_wait_ms=FOREVER_MS)
        assert world.handler.parked_count == 1 and session.client.transport.reading
        await world.append(MANY - 1)
        assert records(one(session.client)) == [MANY - 1]
        session.send((MANY - 1, 1), max_wait_ms=500)
        assert world.handler.parked_count == 1
        world.clock.advance(0.5)
        assert one(session.client).responses == []

    run(test, partitions=MANY)


def test_a_large_session_with_much_news_is_read_in_slices_and_misses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, MANY).opened()
        for partition in range(1, 800):
            await append_now(world, partition)
        looked = world.watch_slices(monkeypatch)
        session.send(max_wait_ms=FOREVER_MS)
        assert records(await session.client.answer()) == list(range(1, 800))
        assert sum(looked.values()) and max(looked.values()) <= 500

    run(test, partitions=MANY)


def test_a_fetch_that_wants_many_bytes_is_woken_into_slices_when_much_has_changed() -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, MANY).opened()
        await world.append(0)
        batch_bytes = replica(world).partition.log.size_bytes
        session.send((0, 1), max_wait_ms=FOREVER_MS, min_bytes=700 * batch_bytes)
        for partition in range(1, 701):
            assert session.client.answers() == []
            await append_now(world, partition)
        assert records(await session.client.answer()) == list(range(1, 701))
        assert world.handler.parked_count == 0 and session.client.transport.reading

    run(test, partitions=MANY)


def test_news_between_the_slices_of_a_session_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        client = world.client()
        client.send(*range(MANY), max_wait_ms=0, session_epoch=0)
        session_id = (await client.answer()).session_id
        log = await world.append_only(0)
        flush = log.begin_flush()
        read, has_read = FetchReader.read, 0

        def slowly(*arguments: Any) -> Any:
            nonlocal has_read
            found = read(*arguments)
            has_read += 1
            if has_read == 2:  # the first slice, with that partition, has been read
                log.end_flush(flush)  # type: ignore[arg-type]
            return found

        monkeypatch.setattr(FetchReader, "read", slowly)
        client.send(max_wait_ms=FOREVER_MS, session_id=session_id, session_epoch=1)
        assert records(await client.answer()) == [0]

    run(test, partitions=MANY)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_session_that_is_evicted_while_its_fetch_waits_still_answers_it_and_leaves_then(count: int) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, count).opened()
        session.send(max_wait_ms=FOREVER_MS)
        world.sessions.drop(session.id)
        await world.settle()
        await world.append(3)
        assert records(one(session.client)) == [3]
        await world.settle()
        assert not any(each.watchers for each in world.replicas)
        session.send()
        assert one(session.client).error_code == SESSION_NOT_FOUND

    run(test, partitions=count)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_client_that_leaves_leaves_its_session_and_no_fetch_behind(count: int) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, count).opened()
        session.send(max_wait_ms=FOREVER_MS)
        session.client.connection.connection_lost(None)
        assert world.handler.parked_count == 0
        await world.append(3)
        assert not replica(world, 3).watchers and replica(world, 4).watchers
        world.sessions.drop(session.id)
        await world.settle()
        assert not any(each.watchers for each in world.replicas)

    run(test, partitions=count)


def test_a_partition_that_is_forgotten_is_left() -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, 3).opened()
        session.send(max_wait_ms=0, forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="orders", partitions=[1])])
        assert one(session.client).responses == []
        assert [len(replica(world, n).watchers) for n in range(3)] == [1, 0, 1]

    run(test, partitions=3)


def test_a_wrong_epoch_is_refused_and_changes_nothing() -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, 3).opened()
        session.client.send(session_id=session.id, session_epoch=99)
        assert one(session.client).error_code == WRONG_EPOCH
        session.send(max_wait_ms=0)
        assert one(session.client).error_code == 0

    run(test, partitions=3)


def test_when_the_room_is_used_up_a_session_of_many_partitions_is_answered_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(world: FetchWorld) -> None:
        session = await Session(world, FEW).opened()
        monkeypatch.setattr("headpond.broker.replicas.parked_fetch.PARKED_WEIGHT_MAX", 0)
        session.send(max_wait_ms=500)
        await world.append(3)
        assert session.client.answers() == []
        world.clock.advance(0.5)
        assert one(session.client).responses == []
        session.send(max_wait_ms=500)
        assert records(one(session.client)) == [3], "nothing is lost"

    run(test, partitions=FEW)
