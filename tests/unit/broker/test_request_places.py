"""How many large requests are served at once: those that wait for others keep no place, and none is lost."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headpond.broker.handlers.groups import sync_group
from headpond.broker.requests import dispatch as dispatching
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import (
    AT_ONCE_BYTES_MAX,
    LARGE_AT_ONCE,
    LONG_AT_ONCE,
    MIDDLING_AT_ONCE,
    MIDDLING_BYTES_MAX,
    SLICE_COST,
    Lane,
)
from headpond.protocol.apis import APIS
from headpond.protocol.frame import FrameReader
from headpond.protocol.schema.sync_group import SyncGroupRequest, SyncGroupResponse
from simulation.harness.turns import settle
from unit.broker.connection_rig import INFO, receive
from unit.broker.coordinator_cases import GROUP
from unit.broker.served_rig import Served, describing, frame, served


def test_a_large_request_without_a_place_is_not_decoded_and_waits_for_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded = []
    decode_in_slices = dispatching.Route.decode_in_slices
    monkeypatch.setattr(
        dispatching.Route,
        "decode_in_slices",
        lambda route, data, position: decoded.append(len(data)) or decode_in_slices(route, data, position),
    )

    async def scenario(world: Served) -> None:
        connections = [world.connect() for _ in range(LARGE_AT_ONCE + 3)]
        for number, (connection, _) in enumerate(connections):
            receive(connection, describing(6_000 + number))
        await settle(10)
        assert len(decoded) == LARGE_AT_ONCE
        assert world.server.frame_memory.in_use_bytes > 0  # where the others are counted
        connections[LARGE_AT_ONCE][0].connection_lost(None)  # one goes away while it waits
        staying = [transport for connection, transport in connections if not connection.closed]
        await world.until(lambda: all(transport.written for transport in staying))
        assert len(decoded) == LARGE_AT_ONCE + 2
        assert decoded == sorted(decoded)  # in the order in which they came
        assert world.server.frame_memory.in_use_bytes == 0

    served(scenario)


def test_middling_requests_do_not_wait_for_large_ones() -> None:
    async def scenario(world: Served) -> None:
        large = [world.connect() for _ in range(LARGE_AT_ONCE + 1)]
        for connection, _ in large:
            receive(connection, describing(30_000))
        connection, transport = world.connect()
        request = describing(1_000)
        assert AT_ONCE_BYTES_MAX < len(request) < MIDDLING_BYTES_MAX
        receive(connection, request)
        await world.until(lambda: bool(transport.written))
        assert not any(transport.written for _, transport in large)

    served(scenario)


def test_requests_that_wait_for_other_members_keep_no_place() -> None:
    async def scenario(world: Served) -> None:
        for number in range(LARGE_AT_ONCE + 1):
            member, _ = world.connect()
            protocols = [
                APIS[11].request.JoinGroupRequestProtocol(name=f"p{each}", metadata=bytes(200)) for each in range(900)
            ]
            joining = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 600_000, "protocol_type": "consumer"}
            request = frame("JoinGroup", 3, group_id=f"g{number}", protocols=protocols, **joining)
            assert len(request) > MIDDLING_BYTES_MAX
            receive(member, request)
        connection, transport = world.connect()
        receive(connection, describing(6_000))
        await world.until(lambda: bool(transport.written))

    served(scenario)


def listing_by_time(partitions: int) -> bytes:
    topic, partition = APIS[2].request.ListOffsetsTopic, APIS[2].request.ListOffsetsPartition
    wanted = [partition(partition_index=number, timestamp=5) for number in range(partitions)]
    return frame("ListOffsets", 7, topics=[topic(name="orders", partitions=wanted)])


@pytest.mark.parametrize(
    ("count", "partitions", "groups"), [(LARGE_AT_ONCE, 6_000, 6_000), (MIDDLING_AT_ONCE, 1_000, 1_000)]
)
def test_requests_that_look_into_records_keep_no_place_that_others_wait_for(
    count: int, partitions: int, groups: int
) -> None:
    async def scenario(world: Served) -> None:
        found = asyncio.Event()
        looking: set[Any] = set()

        async def offset_for_timestamp(timestamp: int, *, up_to_end_offset: int, look: Any) -> None:
            looking.add(look.asker)
            await found.wait()

        async def settle() -> None: ...

        partition = SimpleNamespace(
            log=SimpleNamespace(offset_for_timestamp=offset_for_timestamp),
            require_leader=lambda epoch: None,
            settle=settle,
            high_watermark=9,
        )
        world.broker.replicas = SimpleNamespace(partition=lambda tp: partition)  # type: ignore[assignment]
        looks = SimpleNamespace(begin=lambda asker: SimpleNamespace(asker=asker, go_on=lambda: None))
        world.broker.logs = SimpleNamespace(looks=looks)  # type: ignore[assignment]
        slow = [world.connect() for _ in range(count)]
        for connection, _ in slow:
            receive(connection, listing_by_time(partitions))
        await world.until(lambda: len(looking) == count)
        connection, transport = world.connect()
        receive(connection, describing(groups))
        await world.until(lambda: bool(transport.written))
        assert not any(transport.written for _, transport in slow)
        found.set()
        await world.until(lambda: all(transport.written for _, transport in slow))
        assert looking == {connection for connection, _ in slow}, "one look of each request"

    served(scenario)


def test_a_request_whose_parts_pause_side_by_side_takes_one_place_and_gives_it_back() -> None:
    async def scenario(world: Served) -> None:
        long = world.broker.pacing.long
        for _ in range(LONG_AT_ONCE):
            assert long.take()
        context = Context(world.broker, INFO, 0)
        parts = [asyncio.ensure_future(context.spend(SLICE_COST + 1)) for _ in range(3)]
        await asyncio.sleep(0)
        for _ in range(LONG_AT_ONCE):
            long.leave()
        await asyncio.gather(*parts)
        context.leave()
        assert [long.take() for _ in range(LONG_AT_ONCE + 1)] == [True] * LONG_AT_ONCE + [False]

    served(scenario)


def test_a_member_with_very_many_assignments_keeps_no_place_while_it_waits_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: Served) -> None:
        context = Context(world.broker, INFO, 3)
        was_long: list[bool] = []
        monkeypatch.setattr(world.broker.groups, "read", lambda group_id, look: frozenset())

        async def parked(*_: Any) -> SyncGroupResponse:
            was_long.append(context.is_long)
            return SyncGroupResponse()

        monkeypatch.setattr(world.broker.groups, "parked", parked)
        given = SyncGroupRequest.SyncGroupRequestAssignment
        assignments = [given(f"m{n}", b"") for n in range(2 * SLICE_COST)]
        await sync_group.handle(context, SyncGroupRequest(GROUP, 1, "m", assignments=assignments))
        assert was_long == [False]

    served(scenario)


def test_a_lane_is_entered_in_the_order_of_coming_and_left_by_those_who_give_up() -> None:
    async def run() -> None:
        lane, entered = Lane(1), list[str]()

        async def enter(name: str) -> None:
            await lane.enter()
            entered.append(name)

        await enter("a")
        waiting = [asyncio.ensure_future(enter(name)) for name in "bcd"]
        await asyncio.sleep(0)
        assert not lane.take()
        waiting[0].cancel()
        await asyncio.sleep(0)
        for expected in ("ac", "acd"):
            lane.leave()
            await settle(3)
            assert "".join(entered) == expected
        lane.leave()
        assert lane.take()

    asyncio.run(run())


def test_a_lane_goes_on_when_one_of_those_who_wait_for_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    lane, entered = Lane(1), list[str]()

    def fail() -> None:
        raise KeyError("a bug")

    def enter() -> None:
        assert lane.take()
        entered.append("b")

    assert lane.take()
    lane.when_free(fail)
    lane.when_free(enter)
    lane.leave()
    assert entered == ["b"] and "met a bug" in caplog.text
    lane.leave()
    assert lane.take()


def test_a_request_that_fails_at_its_turn_closes_its_own_connection_and_the_next_one_has_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: Served) -> None:
        connections = [world.connect() for _ in range(LARGE_AT_ONCE + 2)]
        for connection, _ in connections:
            receive(connection, describing(6_000))
        failing, failing_transport = connections[LARGE_AT_ONCE]

        keep = FrameReader.keep

        def fail_for_one(reader: FrameReader) -> bool:
            if reader is failing._reader:
                raise OSError("a bug")
            return keep(reader)

        monkeypatch.setattr(FrameReader, "keep", fail_for_one)
        staying = [transport for connection, transport in connections if connection is not failing]
        await world.until(lambda: all(transport.written for transport in staying))
        assert failing_transport.closing and not any(transport.closing for transport in staying)

    served(scenario)


def test_a_client_that_has_gone_keeps_no_place_while_there_is_no_room_for_answers() -> None:
    async def scenario(world: Served) -> None:
        connections = [world.connect() for _ in range(LARGE_AT_ONCE)]
        for connection, _ in connections:
            receive(connection, describing(6_000))
        world.server.reserve_response_bytes(2**40)  # before any of them has begun
        await asyncio.sleep(0)
        for connection, _ in connections:
            connection.connection_lost(None)
        large = world.broker.pacing.large
        await world.until(large.take)
        large.leave()
        assert not world.server.response_memory.has_waiters
        world.server.reserve_response_bytes(-(2**40))
        other, transport = world.connect()
        receive(other, describing(6_000))
        await world.until(lambda: bool(transport.written))

    served(scenario)
