"""A peer that has sent its last request is answered everything that it asked for; so is one that is refused."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from headpond.broker.net.connection import Connection
from headpond.broker.net.server import ENDING_SWEEPS_MAX, SWEEP_SECONDS
from unit.broker.connection_rig import INFO, Script, World, in_loop, receive, request

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Check = Callable[[World, Callable[[], Awaitable[Client]]], Awaitable[None]]


@pytest.fixture(params=["asyncio", "uvloop"])
def served(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Run a test with real sockets on either loop."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run(check: Check, **settings: Any) -> None:
        async def main() -> None:
            world = World(**settings)
            loop = asyncio.get_running_loop()
            listening = await loop.create_server(lambda: Connection(world.server, INFO), "127.0.0.1", 0)

            async def connect() -> Client:
                return await asyncio.open_connection(*listening.sockets[0].getsockname())

            await asyncio.wait_for(check(world, connect), 30)
            assert world.server.connection_count == 0
            listening.close()

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(main())

    return run


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def the_rest(client: Client) -> bytes:
    reader, writer = client
    data = await reader.read()
    writer.close()
    return data


def test_what_was_asked_before_a_half_close_is_answered(served: Callable[..., None]) -> None:
    async def check(world: World, connect: Callable[[], Awaitable[Client]]) -> None:
        client = await connect()
        client[1].write(request("e", b"1") + request("e", b"2"))
        client[1].write_eof()
        assert await the_rest(client) == b"12"
        await until(lambda: not world.server.connection_count)

    served(check)


@pytest.mark.parametrize("verb", ["p", "h"], ids=["parked", "in a task"])
def test_so_is_what_takes_longer_and_what_waits_behind_it(served: Callable[..., None], verb: str) -> None:
    async def check(world: World, connect: Callable[[], Awaitable[Client]]) -> None:
        client = await connect()
        client[1].write(request(verb, b"1") + request("e", b"2") + request("e", b"half of it")[:-3])
        client[1].write_eof()
        await until(lambda: world.script.parked)
        for _ in range(20):  # the end has been seen, if it can be
            await asyncio.sleep(0.001)
        world.script.parked[b"1"].complete([b"1"])
        for connection in world.script.holding:
            connection.unhold()
        assert await the_rest(client) == b"12"
        await until(lambda: not world.server.connection_count)
        assert world.server.frame_memory.in_use_bytes == 0

    served(check)


def test_a_large_answer_is_sent_to_its_end_to_a_peer_that_reads_slowly(served: Callable[..., None]) -> None:
    async def check(world: World, connect: Callable[[], Awaitable[Client]]) -> None:
        class Large(Script):
            def serve(self, connection: Connection, *frame: Any) -> None:
                connection.respond(bytes(20_000_000))

        world.server.dispatcher = Large()
        reader, writer = await connect()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        writer.write(request("e", b"much") + request("e", b"more"))
        writer.write_eof()
        size_bytes = 0
        while data := await reader.read(1_000_000):
            size_bytes += len(data)
        assert size_bytes == 40_000_000
        writer.close()
        await until(lambda: not world.server.connection_count)

    served(check)


def test_a_peer_that_closes_without_a_question_is_gone_at_once(served: Callable[..., None]) -> None:
    async def check(world: World, connect: Callable[[], Awaitable[Client]]) -> None:
        client = await connect()
        client[1].write(request("e", b"1"))
        assert await client[0].readexactly(1) == b"1"
        client[1].close()
        await until(lambda: not world.server.connection_count)

    served(check)


def test_a_peer_that_has_gone_altogether_is_noticed_when_it_is_answered(served: Callable[..., None]) -> None:
    async def check(world: World, connect: Callable[[], Awaitable[Client]]) -> None:
        client = await connect()
        client[1].write(request("p", b"1"))
        await until(lambda: world.script.parked)
        client[1].close()
        for _ in range(20):
            await asyncio.sleep(0.001)
        world.script.parked[b"1"].complete([b"1"])
        await until(lambda: not world.server.connection_count)

    served(check)


@pytest.mark.parametrize("idle_ms_max", [int(SWEEP_SECONDS * 3_000), None], ids=["idle", "never idle"])
def test_a_half_closed_connection_waits_for_its_answer_for_a_limited_time(idle_ms_max: int | None) -> None:
    def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"for ever"))
        assert connection.eof_received()
        for _ in range(3):
            world.clock.advance(SWEEP_SECONDS)
        assert not transport.closing
        for _ in range(1 if idle_ms_max else ENDING_SWEEPS_MAX):
            world.clock.advance(SWEEP_SECONDS)
        assert transport.closing

    in_loop(check, idle_ms_max=idle_ms_max)


def test_half_a_request_at_the_end_gives_its_memory_back_when_the_answers_before_it_have_left() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1"))
        receive(connection, request("e", bytes(100_000))[:50_000])
        assert connection.eof_received()
        world.script.parked[b"1"].complete([b"1"])
        await asyncio.sleep(0)
        assert transport.written == b"1"
        assert transport.closing
        connection.connection_lost(None)
        assert world.server.frame_memory.in_use_bytes == 0

    in_loop(check)


def test_nothing_is_read_again_after_the_end_has_been_seen() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1") + request("p", b"2"))
        assert connection.eof_received()
        transport.resume_reading = lambda: 1 / 0  # type: ignore[assignment, method-assign, return-value]
        world.script.parked[b"1"].complete([b"1"])
        await asyncio.sleep(0)
        connection.pause_writing()
        world.script.parked[b"2"].complete([b"2"])
        await asyncio.sleep(0)
        assert not transport.closing, "it has not taken its answers yet"
        connection.resume_writing()
        assert transport.written == b"12"
        assert transport.closing

    in_loop(check)


@pytest.mark.parametrize("data", [request("m", b"?"), b"\xff\xff\xff\xff"], ids=["malformed", "not a frame"])
def test_what_is_refused_closes_the_connection_after_the_parked_answers_before_it(data: bytes) -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1") + request("e", b"2") + data + request("e", b"4"))
        assert not transport.closing
        assert not transport.reading
        world.script.parked[b"1"].complete([b"1"])
        await asyncio.sleep(0)
        assert transport.written == b"12"
        assert transport.closing
        assert b"4" not in world.script.served

    in_loop(check)
