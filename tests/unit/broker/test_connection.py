"""One connection: holding back, back-pressure, and what becomes of a peer that misbehaves."""

from __future__ import annotations

import asyncio
import logging

import pytest
import uvloop

from headpond.broker.net.answering import JOINED_BYTES_MAX
from headpond.broker.net.connection import LARGE_FRAME_BYTES, Connection
from headpond.broker.net.server import SWEEP_SECONDS
from headpond.protocol.frame_memory import RECEIVE_BUFFER_BYTES
from headpond.storage.log.lookup import LENT_FROM_BYTES
from unit.broker.connection_rig import INFO, Script, Transport, World, in_loop, receive, request


def test_a_held_connection_serves_nothing_further_until_it_is_let_go() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("h", b"1") + request("e", b"2"))
        assert world.script.served == [b"1"]
        assert not transport.reading
        world.script.parked[b"1"].complete([b"1"])
        connection.unhold()
        await asyncio.sleep(0)
        assert world.script.served == [b"1", b"2"]
        assert transport.written == b"12"
        assert transport.reading

    in_loop(check)


def test_a_request_put_back_is_served_again_with_the_same_bytes() -> None:
    def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("r", b"body") + request("e", b"next"))
        assert world.script.served == [b"body"]
        other, _ = world.connect()
        receive(other, request("e", b"x" * 1_000))  # the shared buffer is used by somebody else meanwhile
        connection.unhold()
        assert world.script.served[-2:] == [b"body", b"next"]
        assert transport.written == b"bodynext"

    in_loop(check)


def test_reading_pauses_at_the_limit_of_open_slots_and_goes_on_below_it() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, b"".join(request("p", b"%d" % i) for i in range(6)))
        assert len(world.script.served) == 4
        assert not transport.reading
        world.script.parked[b"0"].complete([b"0"])
        await asyncio.sleep(0)
        assert len(world.script.served) == 5
        for i in range(1, 5):
            world.script.parked[b"%d" % i].complete([b"%d" % i])
        await asyncio.sleep(0)
        assert len(world.script.served) == 6
        assert transport.reading

    in_loop(check, inflight_max=4)


def test_a_large_request_that_waits_for_its_answer_ends_the_turn_of_its_connection() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"l" * (LARGE_FRAME_BYTES - 9)) + request("e", b"2"))
        assert world.script.served[-1] == b"2", "what has been read is served"
        assert not transport.reading
        await asyncio.sleep(0)
        assert transport.reading

    in_loop(check)


@pytest.mark.parametrize(("verb", "size"), [("p", LARGE_FRAME_BYTES - 10), ("e", 2 * LARGE_FRAME_BYTES)])
def test_a_smaller_request_and_one_that_is_answered_at_once_do_not(verb: str, size: int) -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("e", b"first") + request(verb, b"x" * size))
        assert transport.reading

    in_loop(check)


def test_large_requests_that_wait_in_the_socket_are_served_in_a_turn_each() -> None:
    count = 30

    async def check() -> None:
        world = World(inflight_max=count)
        loop = asyncio.get_running_loop()
        turn, turns, answered = 0, [], asyncio.Event()

        def tick() -> None:
            nonlocal turn
            turn += 1
            if not answered.is_set():
                loop.call_soon(tick)

        class AnsweredLater(Script):
            def serve(self, connection: Connection, buffer: bytearray, start: int, end: int, *_: int) -> None:
                turns.append(turn)
                loop.call_soon(connection.park().complete, [bytes(buffer[start + 9 : start + 13])])

        world.server.dispatcher = AnsweredLater()
        listening = await loop.create_server(lambda: Connection(world.server, INFO), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        tick()
        writer.write(b"".join(request("l", b"%04d" % n + b"l" * RECEIVE_BUFFER_BYTES) for n in range(count)))
        for n in range(count):
            assert await reader.readexactly(4) == b"%04d" % n
        answered.set()
        assert len(set(turns)) == count
        writer.close()
        listening.close()

    uvloop.run(check())  # the loop that goes on reading


def test_a_connection_that_is_held_or_gone_does_not_read_on_in_the_turn_after_a_large_request() -> None:
    async def check(world: World) -> None:
        held, held_transport = world.connect()
        receive(held, request("h", b"l" * LARGE_FRAME_BYTES))
        gone, gone_transport = world.connect()
        receive(gone, request("p", b"l" * LARGE_FRAME_BYTES))
        gone.connection_lost(None)
        await asyncio.sleep(0)
        assert not held_transport.reading
        assert not gone_transport.reading
        held.unhold()
        assert held_transport.reading

    in_loop(check)


def test_a_peer_that_does_not_read_its_responses_is_not_served_meanwhile() -> None:
    def check(world: World) -> None:
        connection, transport = world.connect()
        connection.pause_writing()
        receive(connection, request("e", b"1"))
        assert world.script.served == []
        assert not transport.reading
        assert world.server.response_memory.held_bytes == 1_000
        connection.resume_writing()
        assert transport.written == b"1"
        assert world.server.response_memory.held_bytes == 0

    in_loop(check)


def test_too_many_unread_response_bytes_are_noticed_and_forgotten_when_the_peer_leaves() -> None:
    def check(world: World) -> None:
        connection, _ = world.connect()
        connection.pause_writing()
        assert world.server.responses_are_piling_up
        connection.connection_lost(None)
        assert not world.server.responses_are_piling_up

    in_loop(check, response_memory_bytes_max=999)


def test_completing_a_slot_of_a_peer_that_has_left_does_nothing() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1"))
        left: list[bool] = []
        world.script.parked[b"1"].on_abandoned = lambda: left.append(True)
        connection.connection_lost(None)
        world.script.parked[b"1"].complete([b"1"])
        await asyncio.sleep(0)
        assert transport.written == b""
        assert left == [True]

    in_loop(check)


@pytest.mark.parametrize("verb", ["m", "?"], ids=["malformed", "bug"])
def test_a_request_that_is_not_understood_closes_the_connection_after_the_answers_before_it(verb: str) -> None:
    def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("e", b"1") + request(verb, b"2") + request("e", b"3"))
        assert transport.written == b"1"
        assert transport.closing
        assert world.script.served == [b"1", b"2"]

    in_loop(check)


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "an HTTP request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "a TLS handshake"),
        (b"\xff\xff\xff\xff____", "socket.request.max.bytes"),
    ],
    ids=["http", "tls", "garbage"],
)
def test_what_was_sent_to_this_port_by_mistake_is_named_in_the_log(
    data: bytes, hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, data)
        assert transport.closing

    with caplog.at_level(logging.WARNING):
        in_loop(check, request_bytes_max=100_000_000)
    assert hint in caplog.text


def test_connections_beyond_the_limits_are_refused_and_their_places_come_free() -> None:
    def check(world: World) -> None:
        first, _ = world.connect("10.0.0.1")
        _, second = world.connect("10.0.0.1")
        assert second.aborted
        _, third = world.connect("10.0.0.2")
        assert third.aborted, "max.connections counts the refused one until it is gone"
        first.connection_lost(None)
        assert world.server.connection_count == 2

    in_loop(check, connections_max=2, connections_per_ip_max=1)


def test_an_idle_connection_is_closed_but_not_one_whose_request_is_being_served() -> None:
    def check(world: World) -> None:
        _, idle = world.connect()
        busy_connection, busy = world.connect()
        receive(busy_connection, request("p", b"1"))
        for _ in range(4):
            world.clock.advance(SWEEP_SECONDS)
        assert idle.closing
        assert not busy.closing

    in_loop(check, idle_ms_max=int(SWEEP_SECONDS * 2_000))


def test_nobody_is_served_before_the_broker_is_ready() -> None:
    def check(world: World) -> None:
        world.server.is_open = False
        connection, transport = world.connect()
        receive(connection, request("e", b"1"))
        assert world.script.served == []
        world.server.open()
        assert transport.written == b"1"

    in_loop(check)


def test_who_is_accepted_before_the_broker_is_ready_and_comes_to_be_after_it_is_served() -> None:
    """Loops ask for the protocol of a new connection one turn before they tell it that it is connected."""

    def check(world: World) -> None:
        world.server.is_open = False
        connection, transport = Connection(world.server, INFO), Transport("10.0.0.1")
        world.server.open()
        connection.connection_made(transport)  # type: ignore[arg-type]
        receive(connection, request("e", b"1"))
        assert transport.written == b"1"
        assert transport.reading

    in_loop(check)


def test_who_is_accepted_before_the_broker_stops_and_comes_to_be_after_it_is_not_served() -> None:
    async def check(world: World) -> None:
        connection, transport = Connection(world.server, INFO), Transport("10.0.0.1")
        await world.server.stop_serving()
        connection.connection_made(transport)  # type: ignore[arg-type]
        receive(connection, request("e", b"1"))
        assert world.script.served == []
        await world.server.close()
        assert transport.closing

    in_loop(check)


def test_who_comes_by_one_address_while_another_is_being_bound_is_served_under_the_port_that_was_found() -> None:
    async def check(world: World) -> None:
        world.server.is_open = False
        world.net.accepts_early = True
        port = await world.server.listen("localhost", 0, lambda port: INFO._replace(advertised_port=port))
        connection, transport = world.net.early[0], Transport("10.0.0.1")
        connection.connection_made(transport)  # type: ignore[arg-type]
        receive(connection, request("e", b"1"))
        world.server.open()
        assert transport.written == b"1"
        assert connection.listener.advertised_port == port

    in_loop(check)


def test_what_is_lent_is_never_joined_with_others() -> None:
    """Joining looks into it. A response with a lent part is as large as that at least."""
    assert LENT_FROM_BYTES >= JOINED_BYTES_MAX
