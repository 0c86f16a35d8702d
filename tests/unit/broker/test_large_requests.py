"""Large requests and long answers, through the dispatcher: in slices, in order, and a few at a time."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headpond.broker.handlers.groups import describe_groups, sync_group
from headpond.broker.net.connection import Connection
from headpond.broker.net.server import Server
from headpond.broker.requests import dispatch as dispatching
from headpond.broker.requests import long_answers
from headpond.broker.requests.context import Context
from headpond.broker.requests.dispatch import Dispatch
from headpond.broker.requests.letting_go import DROPPED_AT_ONCE, let_go
from headpond.broker.requests.pacing import (
    AT_ONCE_BYTES_MAX,
    LARGE_AT_ONCE,
    LONG_AT_ONCE,
    MIDDLING_AT_ONCE,
    MIDDLING_BYTES_MAX,
    SLICE_COST,
    Lane,
)
from headpond.config.broker import NetworkSettings
from headpond.coordination.slices import finish_now
from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.frame import FrameReader
from headpond.protocol.header import encode_request_header
from headpond.protocol.schema.describe_groups import DescribeGroupsResponse
from headpond.protocol.schema.sync_group import SyncGroupRequest, SyncGroupResponse
from headpond.telemetry.requests import RequestMeters
from support.wire import API_KEYS
from unit.broker.connection_rig import INFO, Net, Transport, receive
from unit.broker.coordinator_cases import GROUP, Coordinators, with_coordinators

TURNS_MAX = 200_000


class Served:
    """A broker with connections."""

    def __init__(self, broker: Coordinators) -> None:
        self.broker = broker.broker
        self.clock = broker.cluster.clock
        self.meters = RequestMeters()
        dispatch = Dispatch(self.broker, broker.cluster.tasks, self.meters)
        self.server = Server(NetworkSettings(listeners=()), self.clock, Net(), dispatch)  # type: ignore[arg-type]
        self.server.is_open = True

    def connect(self) -> tuple[Connection, Transport]:
        connection, transport = Connection(self.server, INFO), Transport()
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport

    async def until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(TURNS_MAX):
            if is_so():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never was")


def served(scenario: Callable[[Served], Awaitable[None]]) -> None:
    async def run(broker: Coordinators) -> None:
        await scenario(Served(broker))

    with_coordinators(run)


def frame(api: str, version: int, correlation_id: int = 1, **fields: Any) -> bytes:
    key = API_KEYS[api]
    body = encoder(APIS[key].request, version)(APIS[key].request(**fields))
    whole = encode_request_header(key, version, correlation_id, "c") + body
    return len(whole).to_bytes(4, "big") + whole


def describing(groups: int, correlation_id: int = 1, name: str = GROUP) -> bytes:
    return frame("DescribeGroups", 0, correlation_id, groups=[f"{name}{number}" for number in range(groups)])


def answers(transport: Transport) -> list[tuple[int, bytes]]:
    """Correlation ids and bodies, of answers that are whole."""
    data, found = bytes(transport.written), []
    while data:
        size_bytes = int.from_bytes(data[:4], "big")
        assert len(data) >= 4 + size_bytes
        found.append((int.from_bytes(data[4:8], "big"), data[8 : 4 + size_bytes]))
        data = data[4 + size_bytes :]
    return found


def test_a_large_request_is_answered_as_a_small_one_is_and_the_loop_turns_meanwhile() -> None:
    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        request = describing(20_000)
        assert len(request) > MIDDLING_BYTES_MAX
        before_s = world.clock.monotonic()
        receive(connection, request)
        await world.until(lambda: bool(transport.written))
        [(correlation_id, body)] = answers(transport)
        response, _ = decoder(DescribeGroupsResponse, 0)(body, 0)
        assert correlation_id == 1
        assert [row.group_id for row in response.groups] == [f"{GROUP}{number}" for number in range(20_000)]
        pauses = (world.clock.monotonic() - before_s) / 0.002
        assert pauses >= 20_000 * 16 // 8_192  # by the handler alone
        assert world.meters.of("DescribeGroups").total == 1

    served(scenario)


def test_what_comes_after_a_large_request_is_answered_after_it() -> None:
    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        receive(connection, describing(6_000, 1) + describing(1, 2) + describing(3_000, 3) + describing(1, 4))
        await world.until(lambda: transport.written.count(b"\0\0\0\4") > 0 and len(answers(transport)) == 4)
        assert [correlation_id for correlation_id, _ in answers(transport)] == [1, 2, 3, 4]

    served(scenario)


def test_others_are_answered_between_the_slices_of_a_large_request() -> None:
    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        other, other_transport = world.connect()
        receive(connection, describing(20_000))
        for number in range(10):
            receive(other, describing(1, number))
            await world.until(lambda: len(answers(other_transport)) == number + 1)  # noqa: B023
        assert not transport.written

    served(scenario)


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
        for _ in range(10):
            await asyncio.sleep(0)
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


def test_a_large_request_that_is_malformed_closes_its_connection_and_frees_its_place() -> None:
    async def scenario(world: Served) -> None:
        for _ in range(LARGE_AT_ONCE + 1):
            connection, transport = world.connect()
            whole = describing(10_000)
            broken = whole[:-5]
            receive(connection, (len(broken) - 4).to_bytes(4, "big") + broken[4:])
            await world.until(lambda: transport.closing)  # noqa: B023
            assert not transport.written
        assert world.server.dropped_counts["malformed"] == LARGE_AT_ONCE + 1
        connection, transport = world.connect()
        receive(connection, describing(6_000))
        await world.until(lambda: bool(transport.written))

    served(scenario)


def test_an_answer_that_nobody_could_receive_closes_the_connection_with_a_log_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(long_answers, "ANSWER_BYTES_MAX", 200_000)
    monkeypatch.setattr(long_answers, "PIECE_BYTES", 10_000)

    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        receive(connection, describing(6_000))
        await world.until(lambda: bool(transport.written))  # 110 KB
        receive(connection, describing(20_000))
        await world.until(lambda: transport.closing)
        assert len(answers(transport)) == 1

    served(scenario)
    assert "the answer to its DescribeGroups request has more than 200000 bytes" in caplog.text


def test_a_client_that_has_gone_is_not_worked_for() -> None:
    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        receive(connection, describing(50_000))
        await asyncio.sleep(0)
        connection.connection_lost(None)
        other, other_transport = world.connect()
        before_s = world.clock.monotonic()
        receive(other, describing(6_000))
        await world.until(lambda: bool(other_transport.written))
        assert world.clock.monotonic() - before_s < 0.5
        assert not transport.written

    served(scenario)


def test_errors_of_a_long_answer_are_counted_in_slices() -> None:
    row = DescribeGroupsResponse.DescribedGroup
    response = DescribeGroupsResponse(groups=[row(error_code=number % 2 * 16) for number in range(50_000)])
    counting = long_answers.counted(response)
    pauses = 0
    while True:
        try:
            next(counting)
            pauses += 1
        except StopIteration as finished:
            assert finished.value == {16: 25_000}
            break
    assert pauses >= 50_000 // long_answers.CODES_AT_ONCE

    async def scenario(world: Served) -> None:
        world.broker.groups.runtime.resign(0)
        connection, transport = world.connect()
        receive(connection, describing(6_000))
        await world.until(lambda: bool(transport.written))
        await world.until(lambda: any(times > 10 for _, times in world.meters.errors.points()))

    served(scenario)


class Kept:
    """What can be seen to go away."""


def test_a_message_is_let_go_a_part_at_a_time_and_what_others_hold_stays() -> None:
    members = DescribeGroupsResponse.DescribedGroupMember
    shared = [members(member_id="m")]
    witness = Kept()
    is_there = weakref.ref(witness)
    groups: list[Any] = [
        DescribeGroupsResponse.DescribedGroup(members=[members() for _ in range(1_000)]) for _ in range(50)
    ]
    groups += [DescribeGroupsResponse.DescribedGroup(members=shared), DescribeGroupsResponse.DescribedGroup()]
    groups[-1].group_id = witness
    del witness
    last_reference: list[Any] = [DescribeGroupsResponse(groups=groups)]
    del groups
    work = let_go(last_reference)
    pauses = sum(1 for _ in work)
    assert pauses >= 50_000 // DROPPED_AT_ONCE
    gc.collect()
    assert is_there() is None
    assert not last_reference
    assert shared == [members(member_id="m")]


def test_long_answers_are_put_together_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0

    async def scenario(world: Served) -> None:
        nonlocal most
        contexts: list[Context] = []
        handle = describe_groups.handle

        async def watched(ctx: Context, request: Any) -> Any:
            nonlocal most
            contexts.append(ctx)
            response = await handle(ctx, request)
            most = max(most, sum(each.is_long for each in contexts))
            return response

        monkeypatch.setattr(describe_groups, "handle", watched)
        connections = [world.connect() for _ in range(LONG_AT_ONCE + 8)]
        for connection, _ in connections:
            receive(connection, describing(1_200, name="g"))
        await world.until(lambda: all(transport.written for _, transport in connections))
        assert len(contexts) == len(connections)

    served(scenario)
    assert 1 < most <= LONG_AT_ONCE


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
            for _ in range(3):
                await asyncio.sleep(0)
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


def test_the_slices_of_an_answer_that_nothing_is_wrong_with_can_be_finished_at_once() -> None:
    route = dispatching.Route(15, 0, RequestMeters().of("DescribeGroups"))
    response = DescribeGroupsResponse(groups=[DescribeGroupsResponse.DescribedGroup(group_id="g")] * 3_000)
    parts = finish_now(long_answers.encoded(route, 7, response))
    assert b"".join(bytes(part) for part in parts) == route.frame(7, response)
