"""Requests that are timed: answered at once, parked, put back, or left behind by a client that has gone."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from headpond.broker.net.connection import Connection
from headpond.broker.net.server import SWEEP_SECONDS, Server
from headpond.broker.net.slots import Slot
from headpond.broker.net.timing import serve_timed
from headpond.broker.requests.context import ListenerInfo
from headpond.config.broker import NetworkSettings
from headpond.telemetry.requests import RequestMeter, RequestMeters
from simulation.harness.clock import ManualClock

KEY, VERSION = 0, 9
FRAME = (12).to_bytes(4, "big") + bytes([0, KEY, 0, VERSION]) + bytes(8)


class Transport:
    def __init__(self) -> None:
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def get_extra_info(self, name: str) -> Any:
        return ("10.0.0.1", 1)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


class Handler:
    """A hot handler that takes 3 ms; ``does`` says what it does then."""

    def __init__(self, clock: ManualClock, does: Callable[[Connection], bytes | None]) -> None:
        self.meter: RequestMeter = RequestMeters().of("Produce")
        self.clock = clock
        self.does = does

    def receive(self, connection: Connection, *frame: Any) -> bytes | None:
        meter = self.meter
        meter.left -= 1
        if not meter.left:
            return serve_timed(self.receive, meter, self.clock, connection, *frame)  # type: ignore[arg-type]
        self.clock.advance(0.003)
        return self.does(connection)


class World:
    def __init__(self, does: Callable[[Connection], bytes | None], **settings: Any) -> None:
        self.clock = ManualClock()
        self.clock.advance(100)  # long after the last that was timed, or it would be sampled
        network = SimpleNamespace(buffer=bytearray)
        self.server = Server(NetworkSettings(listeners=(), **settings), self.clock, network, None)  # type: ignore[arg-type]
        self.server.is_open = True
        self.server.call_soon = lambda callback: None  # type: ignore[method-assign]
        self.handler = Handler(self.clock, does)
        self.server.add_hot_handler(KEY, range(VERSION, VERSION + 1), self.handler.receive, answers_are_small=True)
        self.meter = self.handler.meter
        self.connection, self.transport = Connection(self.server, ListenerInfo("P", "P", "h", 1)), Transport()
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def receive(self, data: bytes = FRAME) -> None:
        buffer = self.connection.get_buffer(-1)
        buffer[: len(data)] = data
        self.connection.buffer_updated(len(data))


def test_a_request_that_is_answered_at_once_takes_as_long_as_its_handler() -> None:
    world = World(lambda _: b"answer")
    world.receive()
    assert world.meter.total == world.meter.duration.count == 1
    assert round(world.meter.duration.sum, 6) == 0.003
    assert world.meter.parked.count == 0
    world.connection.flush_now()  # the end of the turn
    assert (world.server.received_bytes, world.server.sent_bytes) == (len(FRAME), len(b"answer"))


def test_requests_that_come_together_are_all_counted() -> None:
    world = World(lambda _: b"answer")
    world.receive(FRAME * 5)
    assert world.meter.total == world.meter.duration.count == 5
    assert (world.server.received_bytes, world.server.sent_bytes) == (5 * len(FRAME), 5 * len(b"answer"))


def test_a_parked_request_is_timed_until_its_slot_completes() -> None:
    slots: list[Slot] = []

    def park(connection: Connection) -> None:
        slots.append(connection.park())

    world = World(park)
    world.receive()
    assert world.meter.duration.count == 0
    world.clock.advance(0.5)
    slots[0].complete((b"late",))
    assert round(world.meter.duration.sum, 6) == 0.503
    assert round(world.meter.parked.sum, 6) == 0.5
    assert not world.server.timed_slots
    world.connection.flush_now()
    assert world.transport.written == b"late" and world.server.sent_bytes == 4


def test_an_answer_that_waits_behind_a_parked_one_is_not_taken_for_parked() -> None:
    slots: list[Slot] = []

    def park_the_first(connection: Connection) -> bytes | None:
        if slots:
            return b"second"
        slots.append(connection.park())
        return None

    world = World(park_the_first)
    world.receive(FRAME * 2)
    assert world.meter.duration.count == 1
    slots[0].complete((b"first",))
    assert world.meter.duration.count == 2 and world.meter.parked.count == 1
    world.connection.flush_now()
    assert world.transport.written == b"firstsecond"


def test_a_request_that_is_put_back_is_counted_and_timed_when_it_comes_again() -> None:
    tries = []

    def hold_once(connection: Connection) -> bytes | None:
        tries.append(1)
        if len(tries) > 1:
            return b"answer"
        connection.serve_again_later()
        connection.hold()
        world.meter.uncount()
        return None

    world = World(hold_once)
    world.receive()
    assert (world.meter.total, world.meter.duration.count) == (0, 0)
    world.connection.unhold()
    assert (world.meter.total, world.meter.duration.count) == (1, 1)
    assert world.transport.written == b"answer"


def test_a_client_that_goes_while_its_request_is_timed_leaves_nothing_behind() -> None:
    world = World(lambda connection: connection.park() and None)
    world.receive()
    assert len(world.server.timed_slots) == 1
    world.connection.connection_lost(None)
    assert not world.server.timed_slots
    assert world.server.connection_count == 0 and world.server.opened_count == 1


def test_a_connection_that_is_closed_for_idleness_is_counted() -> None:
    world = World(lambda _: b"answer", idle_ms_max=int(SWEEP_SECONDS * 1_000))
    for _ in range(3):
        world.server._sweep()
    assert world.transport.is_closed
    assert world.server.dropped_counts == {"idle": 1, "malformed": 0, "memory": 0, "bug": 0}
