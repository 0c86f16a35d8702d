"""All connections of a broker: what they share, how many there may be, and who among them has been idle too long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

from headpond.broker.net.answering import Answering
from headpond.broker.net.connection import Connection
from headpond.broker.net.response_memory import ResponseMemory
from headpond.broker.net.slots import Slot
from headpond.broker.net.timing import Timing
from headpond.broker.requests.context import ListenerInfo
from headpond.config.broker import NetworkSettings
from headpond.ports import Clock, Listener, Network, Part, TimerHandle
from headpond.protocol.errors import ProtocolError
from headpond.protocol.frame import InvalidFrameSize
from headpond.protocol.frame_memory import FrameMemory

log = logging.getLogger("headpond.server")

# How often idle connections are looked for; an idle one is closed at most this much too late.
SWEEP_SECONDS = 5.0
# While connections wait for memory, those who hold it are looked at this often.
MEMORY_WATCH_SECONDS = 1.0
# A peer that has sent its last request waits this long at most for its answers, if connections.max.idle.ms is off.
ENDING_SWEEPS_MAX = 120
ANSWERS_BETWEEN_LOOKS = 15
"""When a turn had a single answer, so many leave at once before the next look at how many a turn has."""

HotHandler = Callable[[Connection, bytearray, memoryview, int, int, int, int], bytes | None]
"""(connection, buffer, view, start, end, version, correlation id): serves a frame at once, without a task. Returns the
answer, or None: there is none, or it was or will be given through the connection."""


class Dispatcher(Protocol):
    """Serves whatever has no hot handler."""

    def serve(
        self, connection: Connection, buffer: bytearray, start: int, end: int, key_version: int, correlation_id: int
    ) -> None: ...


class Server:
    def __init__(self, settings: NetworkSettings, clock: Clock, network: Network, dispatcher: Dispatcher) -> None:
        self.frame_memory = FrameMemory(
            settings.request_memory_bytes_max,
            settings.request_bytes_max,
            now_s=lambda: clock.monotonic(),
            allocate=lambda size_bytes: network.buffer(size_bytes),
        )
        self.receive_buffer = self.frame_memory.shared
        self.response_memory = ResponseMemory(settings.response_memory_bytes_max)
        self.frame_bytes_max = settings.request_bytes_max
        self.inflight_max = settings.inflight_max
        self.tick = 0
        # Counted for the metrics; plain numbers, because each request touches them.
        self.received_bytes = 0
        self.sent_bytes = 0
        self.opened_count = 0
        self.refused_counts = {"max_connections": 0, "max_connections_per_ip": 0}
        self.dropped_counts = {"idle": 0, "malformed": 0, "memory": 0, "bug": 0}
        self.timed_slots: dict[Slot, Timing] = {}
        self.answers_at_once = 0  # as many leave without waiting for the end of their turn: it had only one lately
        self.is_open = False  # connections that are accepted wait: until the broker is ready, or for their end
        self._settings = settings
        self._clock = clock
        self._network = network
        self.dispatcher = dispatcher
        # by key << 16 | version, which are the first four bytes of a request
        self.hot_handlers: dict[int, HotHandler] = {}  # all of them, as long as there is memory for large answers
        self.small_answer_handlers: dict[int, HotHandler] = {}
        self._all_hot_handlers = self.hot_handlers
        self._connections: dict[Connection, None] = {}
        self._per_host: dict[str, int] = {}
        self._listeners: list[Listener] = []
        self._to_flush: list[Answering] = []
        self._sweep_timer: TimerHandle | None = None
        self._watches_memory = False

    def add_hot_handler(self, key: int, versions: range, handler: HotHandler, *, answers_are_small: bool) -> None:
        for version in versions:
            self._all_hot_handlers[key << 16 | version] = handler
            if answers_are_small:
                self.small_answer_handlers[key << 16 | version] = handler

    async def listen(self, host: str, port: int, info_for: Callable[[int], ListenerInfo]) -> int:
        """Accept connections; ``info_for(port)`` describes the listener once its port is known. Returns the port."""
        info: ListenerInfo | None = None
        early: list[Connection] = []

        def accept() -> Connection:
            # Never raises: uvloop would accept nobody on this address any more.
            connection = Connection(self, info or info_for(port))
            if info is None:
                early.append(connection)
            return connection

        listener = await self._network.listen(host, port, accept)
        info = info_for(listener.port)
        for connection in early:  # they came by one of the host's addresses while the others were still being bound
            connection.listener = info
        self._listeners.append(listener)
        if self._sweep_timer is None:
            self._sweep_timer = self._clock.call_later(SWEEP_SECONDS, self._sweep)
        return listener.port

    def open(self) -> None:
        """Serve: those who came early have waited for this."""
        self.is_open = True
        for connection in list(self._connections):
            connection.unhold()

    async def stop_serving(self) -> None:
        """Accept nobody and serve no further request; what was served already is still answered."""
        for listener in self._listeners:
            await listener.close()
        self._listeners.clear()
        self.is_open = False  # for those who were accepted in this turn, and come to be in the next
        for connection in list(self._connections):
            connection.hold()

    async def close(self) -> None:
        await self.stop_serving()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in list(self._connections):
            connection.close()

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def reconfigure(self, settings: NetworkSettings) -> None:
        self._settings = settings
        self.frame_memory.resize(settings.request_memory_bytes_max)
        self.response_memory.budget_bytes = settings.response_memory_bytes_max
        self.inflight_max = settings.inflight_max

    @property
    def responses_are_piling_up(self) -> bool:
        """Answers that can't leave take half of their budget: fetches are cut to their minimum."""
        return self.response_memory.is_piling_up

    # --- called by connections

    def connection_opened(self, connection: Connection) -> None:
        host = connection.peer_host
        here = self._per_host.get(host, 0) + 1
        self._per_host[host] = here
        self._connections[connection] = None
        self.opened_count += 1
        self.frame_memory.has_many_hosts = len(self._per_host) > 1
        if not self.is_open:
            # Here, where it becomes one of those whom ``open`` lets go: loops make a connection a turn before they call
            # this, and one that was held from then on would be held for ever if the broker opened in between.
            connection.hold()
        limits = self._settings
        if len(self._connections) > limits.connections_max:
            self.refused_counts["max_connections"] += 1
            log.warning("refused a connection from %s: max.connections is %d", host, limits.connections_max)
            connection.abort()
        elif here > limits.connections_per_ip.get(host, limits.connections_per_ip_max):
            self.refused_counts["max_connections_per_ip"] += 1
            log.warning("refused a connection from %s: max.connections.per.ip is %d", host, here - 1)
            connection.abort()

    def connection_closed(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        left = self._per_host.get(connection.peer_host, 1) - 1
        if left:
            self._per_host[connection.peer_host] = left
        else:
            self._per_host.pop(connection.peer_host, None)
            self.frame_memory.has_many_hosts = len(self._per_host) > 1

    def responses_counted(self) -> None:
        """More or less is held than before: large answers go on or have to wait."""
        is_full = self.response_memory.is_full
        if is_full is (self.hot_handlers is self._all_hot_handlers):
            self.hot_handlers = self.small_answer_handlers if is_full else self._all_hot_handlers
            if not is_full:
                self.call_soon(self._let_go_on)

    def reserve_response_bytes(self, size_bytes: int) -> None:
        """For an answer that is being read from a device; negative when it is there."""
        self.response_memory.held_bytes += size_bytes
        self.responses_counted()

    async def room_for_an_answer(self, slot: Slot) -> bool:
        """For a request that was dispatched before others have filled the memory with their answers. False: its client
        has gone away while it waited."""
        while self.response_memory.is_full:
            if slot.connection.closed:
                return False
            waiting = _Waiting(asyncio.get_running_loop().create_future())
            self.response_memory.wait(waiting)
            self.watch_memory()
            slot.on_abandoned = waiting.there_is_room
            try:
                await waiting.room
            finally:
                slot.on_abandoned = None
                self.response_memory.forget(waiting)
        return not slot.connection.closed

    def watch_memory(self) -> None:
        """A connection waits for memory."""
        if not self._watches_memory:
            self._watches_memory = True
            self._clock.call_later(MEMORY_WATCH_SECONDS, self._watch_memory)

    def flush_soon(self, connection: Answering) -> None:
        """Answers come in bursts: many connections are read in one turn of the loop, a group commit answers many. They
        leave together at its end: a client on this machine is then woken once, not once per answer, which takes a
        fifth off the cost of a small request. The end of a turn has a price, too: see ``answers_at_once``."""
        if not self._to_flush:
            self.call_soon(self._flush_all)
        self._to_flush.append(connection)

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def send(self, transport: asyncio.Transport, parts: Sequence[Part]) -> None:
        self._network.send(transport, parts)

    def refuse_frame(self, connection: Connection, refused: InvalidFrameSize) -> None:
        self.dropped_counts["malformed"] += 1
        hint = _what_it_looks_like(refused.first_bytes)
        if hint:
            log.warning(
                "%s sent %s to this listener, which speaks Kafka's protocol in plain text", connection.peer_host, hint
            )
        else:
            log.warning(
                "closed a connection from %s: a request of %d bytes, and socket.request.max.bytes is %d",
                connection.peer_host, refused.size_bytes, self.frame_bytes_max,
            )  # fmt: skip
        connection.refuse()

    def refuse_request(self, connection: Connection, malformed: ProtocolError) -> None:
        self.dropped_counts["malformed"] += 1
        log.info("closed a connection from %s: %s", connection.peer_host, malformed)
        connection.refuse()

    def report_bug(self, connection: Answering) -> None:
        self.dropped_counts["bug"] += 1
        log.exception("a request from %s met a bug; its connection is closed", connection.peer_host)
        connection.close()

    def note_put_out(self, connection: Connection, what: str) -> None:
        self.dropped_counts["memory"] += 1
        log.warning("closed a connection from %s: %s held memory that others wait for", connection.peer_host, what)

    def timed_slot_completed(self, slot: Slot) -> None:
        """Some parked requests are being timed: perhaps this one."""
        timing = self.timed_slots.pop(slot, None)
        if timing is not None:
            timing.end(self._clock.monotonic())

    # --- inside

    def _flush_all(self) -> None:
        connections, self._to_flush = self._to_flush, []
        self.answers_at_once = ANSWERS_BETWEEN_LOOKS if len(connections) == 1 else 0
        for connection in connections:
            try:
                connection.flush_now()
            except Exception:
                self.report_bug(connection)

    def _sweep(self) -> None:
        self.tick += 1
        idle_ms_max = self._settings.idle_ms_max
        idle_ticks_max = inf if idle_ms_max is None else idle_ms_max / 1000 / SWEEP_SECONDS
        ending_ticks_max = ENDING_SWEEPS_MAX if idle_ms_max is None else idle_ticks_max
        for connection in list(self._connections):
            idle_ticks = self.tick - connection.active_tick
            if connection.is_closing:
                connection.abort()  # it had a whole sweep's time to go by itself
            elif idle_ticks > (ending_ticks_max if connection.is_ending else idle_ticks_max) and not connection.is_busy:
                self.dropped_counts["idle"] += 1
                log.debug("closed the idle connection from %s", connection.peer_host)
                connection.close()
        self._sweep_timer = self._clock.call_later(SWEEP_SECONDS, self._sweep)

    def _let_go_on(self) -> None:
        """There is room: those who wait go on, one by one until there is none again."""
        while not self.response_memory.is_full and (waiting := self.response_memory.next_waiting()) is not None:
            waiting.there_is_room()

    def _watch_memory(self) -> None:
        """Who holds memory that others wait for, and makes no use of it, is put out."""
        self._watches_memory = False
        if self.frame_memory.has_waiters:
            for frame in self.frame_memory.off_course():
                frame.put_out()
        if self.response_memory.has_waiters:
            for holder in self.response_memory.off_course(self._clock.monotonic()):
                holder.put_out("answers that it has not read")
        if self.frame_memory.has_waiters or self.response_memory.has_waiters:
            self.watch_memory()


class _Waiting:
    """A task that waits for room."""

    def __init__(self, room: asyncio.Future[None]) -> None:
        self.room = room

    def there_is_room(self) -> None:
        if not self.room.done():
            self.room.set_result(None)


def _what_it_looks_like(first_bytes: bytes) -> str:
    if first_bytes[:2] == b"\x16\x03":
        return "a TLS handshake"
    if first_bytes[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC", b"PRI "):
        return "an HTTP request"
    if first_bytes[:4] == b"SSH-":
        return "an SSH greeting"
    return ""
