"""When the answers of a connection leave: in the order of the requests, together at the end of a turn or at once."""

from __future__ import annotations

import asyncio

import pytest

from headpond.broker.net.server import ANSWERS_BETWEEN_LOOKS
from unit.broker.connection_rig import World, in_loop, receive, request


def test_responses_leave_in_request_order_although_later_ones_are_ready_first() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1") + request("e", b"2") + request("p", b"3") + request("e", b"4"))
        assert transport.written == b""
        world.script.parked[b"3"].complete([b"3"])
        await asyncio.sleep(0)
        assert transport.written == b""
        world.script.parked[b"1"].complete([b"1"])
        await asyncio.sleep(0)
        assert transport.written == b"1234"

    in_loop(check)


def test_parked_answers_leave_at_the_end_of_the_turn() -> None:
    async def check(world: World) -> None:
        clients = {body: world.connect() for body in (b"1", b"2")}
        for body, (connection, _) in clients.items():
            receive(connection, request("p", body))
            connection.answer_parked(world.script.parked[body], body)
            assert connection.newest_slot is None
        assert all(transport.written == b"" for _, transport in clients.values())
        await asyncio.sleep(0)
        assert {body: bytes(transport.written) for body, (_, transport) in clients.items()} == {b"1": b"1", b"2": b"2"}
        assert world.server.sent_bytes == 2

    in_loop(check)


def test_answers_of_hot_handlers_leave_at_the_end_of_the_turn_in_order() -> None:
    async def check(world: World) -> None:
        world.server.hot_handlers[99 << 16] = lambda *frame: b"hot"
        connection, transport = world.connect()
        receive(connection, request("e", b"1"))
        receive(connection, request("e", b"2"))
        assert transport.written == b""
        await asyncio.sleep(0)
        assert transport.written == b"hothot"
        assert world.server.sent_bytes == 6

    in_loop(check)


def test_a_large_answer_of_a_hot_handler_is_not_kept_until_the_end_of_the_turn() -> None:
    def check(world: World) -> None:
        answers = [b"small", bytes(1_000_000)]
        world.server.hot_handlers[99 << 16] = lambda *frame: answers.pop(0)
        connection, transport = world.connect()
        receive(connection, request("e", b"1"))
        receive(connection, request("e", b"2"))
        assert transport.written == b"small" + bytes(1_000_000)

    in_loop(check)


def test_answers_leave_at_once_while_turns_have_one_and_together_again_when_they_have_more() -> None:
    async def check(world: World) -> None:
        world.server.hot_handlers[99 << 16] = lambda *frame: b"."
        clients = [world.connect() for _ in range(3)]
        connection, transport = clients[0]
        receive(connection, request("e", b"1"))
        await asyncio.sleep(0)  # the turn had one answer
        for count in range(ANSWERS_BETWEEN_LOOKS):
            receive(connection, request("e", b"2"))
            assert len(transport.written) == 2 + count
        sent = [len(transport.written) for _, transport in clients]
        for connection, _ in clients:  # the next look: this turn has three
            receive(connection, request("e", b"3"))
        assert [len(transport.written) for _, transport in clients] == sent
        await asyncio.sleep(0)
        assert [len(transport.written) for _, transport in clients] == [count + 1 for count in sent]
        receive(connection, request("e", b"4"))
        assert len(clients[2][1].written) == sent[2] + 1
        await asyncio.sleep(0)
        assert len(clients[2][1].written) == sent[2] + 2

    in_loop(check)


def test_an_answer_does_not_overtake_one_that_waits_for_the_end_of_the_turn() -> None:
    async def check(world: World) -> None:
        answers = [b"1", b"2", b"3"]
        world.server.hot_handlers[99 << 16] = lambda *frame: answers.pop(0)
        connection, transport = world.connect()
        receive(connection, request("e", b"1"))
        world.server.answers_at_once = 5
        receive(connection, request("e", b"2"))
        await asyncio.sleep(0)
        receive(connection, request("e", b"3"))
        await asyncio.sleep(0)
        assert transport.written == b"123"

    in_loop(check)


def test_an_answer_that_waits_for_the_end_of_the_turn_is_dropped_with_its_connection() -> None:
    async def check(world: World) -> None:
        world.server.hot_handlers[99 << 16] = lambda *frame: b"hot"
        connection, transport = world.connect()
        receive(connection, request("e", b"1"))
        connection.connection_lost(None)
        await asyncio.sleep(0)
        assert transport.written == b""

    in_loop(check)


@pytest.mark.parametrize("order", ["12", "21"])
def test_parked_answers_leave_in_request_order(order: str) -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1") + request("p", b"2") + request("e", b"3"))
        for number in order:
            body = number.encode()
            connection.answer_parked(world.script.parked[body], body)
        await asyncio.sleep(0)
        assert transport.written == b"123"

    in_loop(check)


def test_a_parked_answer_makes_room_for_the_request_that_waits_for_a_slot() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1") + request("e", b"2"))
        assert world.script.served == [b"1"]
        connection.answer_parked(world.script.parked[b"1"], b"1")
        await asyncio.sleep(0)
        assert transport.written == b"12"
        assert transport.reading

    in_loop(check, inflight_max=1)


def test_a_parked_answer_is_not_written_to_a_peer_that_is_being_put_out_and_troubles_nobody() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1"))
        transport.closing = True
        connection.answer_parked(world.script.parked[b"1"], b"1")
        other, broken = world.connect()
        receive(other, request("p", b"2"))
        broken.write = lambda data: 1 / 0  # type: ignore[assignment, method-assign, return-value]
        other.answer_parked(world.script.parked[b"2"], b"2")
        third, fine = world.connect()
        receive(third, request("p", b"3"))
        third.answer_parked(world.script.parked[b"3"], b"3")
        await asyncio.sleep(0)
        assert transport.written == b""
        assert broken.closing
        assert fine.written == b"3"

    in_loop(check)
