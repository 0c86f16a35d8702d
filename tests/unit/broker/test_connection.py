"""One connection: order of responses, holding back, back-pressure, and what becomes of a peer that misbehaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from penstock.broker.connection import Connection
from penstock.broker.context import ListenerInfo
from penstock.broker.server import ANSWERS_BETWEEN_LOOKS, SWEEP_SECONDS, Server
from penstock.broker.slots import Slot
from penstock.config.broker import NetworkSettings
from penstock.protocol.errors import MalformedMessage

INFO = ListenerInfo("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)


class Transport:
    """Takes what is written; pauses its writer when told to."""

    def __init__(self, host: str = "10.0.0.1") -> None:
        self.written = bytearray()
        self.closing = False
        self.aborted = False
        self.reading = True
        self.host = host

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def get_extra_info(self, name: str) -> Any:
        return (self.host, 5_000) if name == "peername" else None

    def write(self, data: bytes) -> None:
        assert not self.closing
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        for part in parts:
            self.write(part)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed without a pause"
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return 1_000


class Timers:
    """A clock whose timers run when the test says so."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Any:
        self.callbacks.append(callback)
        return self

    def cancel(self) -> None:
        pass

    def run(self) -> None:
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()


class Listening:
    host, port = "127.0.0.1", 9092

    async def close(self) -> None: ...


class Net:
    """``accepts_early``: somebody comes before the last address is bound."""

    def __init__(self) -> None:
        self.accept: Callable[[], Connection] | None = None
        self.accepts_early = False
        self.early: list[Connection] = []

    async def listen(self, host: str, port: int, factory: Any) -> Listening:
        self.accept = factory
        if self.accepts_early:
            self.early.append(factory())
        return Listening()


class Script:
    """A dispatcher that does what the frame's third byte says; the rest of the frame is echoed."""

    def __init__(self) -> None:
        self.served: list[bytes] = []
        self.parked: dict[bytes, Slot] = {}
        self.holding: list[Connection] = []
        self.again = 0

    def serve(
        self, connection: Connection, buffer: bytearray, start: int, end: int, key_version: int, correlation_id: int
    ) -> None:
        frame = bytes(buffer[start:end])
        verb, body = frame[8:9], frame[9:]
        self.served.append(body)
        if verb == b"e":
            connection.respond(body)
        elif verb == b"p":
            self.parked[body] = connection.park()
        elif verb == b"h":
            self.parked[body] = connection.park()
            connection.hold()
            self.holding.append(connection)
        elif verb == b"r":
            if self.again:
                connection.respond(body)
            else:
                self.again += 1
                connection.serve_again_later()
                connection.hold()
                self.holding.append(connection)
        elif verb == b"m":
            raise MalformedMessage("not understood")
        else:
            raise KeyError("a bug")


class World:
    def __init__(self, **settings: Any) -> None:
        self.script = Script()
        self.timers = Timers()
        self.net = Net()
        network = msgspec.structs.replace(NetworkSettings(listeners=()), **settings)
        self.server = Server(network, self.timers, self.net, self.script)  # type: ignore[arg-type]
        self.server.is_open = True

    async def start(self) -> None:
        await self.server.listen("127.0.0.1", 0, lambda port: INFO)

    def connect(self, host: str = "10.0.0.1") -> tuple[Connection, Transport]:
        connection = Connection(self.server, INFO)
        transport = Transport(host)
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport


def request(verb: str, body: bytes) -> bytes:
    frame = bytes([0, 99, 0, 0, 0, 0, 0, 1]) + verb.encode() + body
    return len(frame).to_bytes(4, "big") + frame


def receive(connection: Connection, data: bytes) -> None:
    while data:
        buffer = connection.get_buffer(-1)
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        connection.buffer_updated(count)


def in_loop(test: Callable[[World], Any], **settings: Any) -> None:
    async def run() -> None:
        world = World(**settings)
        await world.start()
        result = test(world)
        if result is not None:
            await result

    asyncio.run(run())


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


def test_a_peer_that_does_not_read_its_responses_is_not_served_meanwhile() -> None:
    def check(world: World) -> None:
        connection, transport = world.connect()
        connection.pause_writing()
        receive(connection, request("e", b"1"))
        assert world.script.served == []
        assert not transport.reading
        assert world.server.held_response_bytes == 1_000
        connection.resume_writing()
        assert transport.written == b"1"
        assert world.server.held_response_bytes == 0

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
            world.timers.run()
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
