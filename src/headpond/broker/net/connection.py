"""One client's connection: bytes in, frames to the dispatcher. How responses leave is in ``answering.py``.

The order rules. A request is served when the ones before it have *taken effect*, which is not when they were answered:
a produce that waits for its flush and a long poll are overtaken by the connection's next request, whose response then
waits its turn in ``slots``. Whatever has not taken effect yet (a topic being created, a segment being rolled before an
append) *holds* the connection: the next frame stays unread until then.

Back-pressure. Nothing is read while the connection is held, while its peer does not take its responses
(``pause_writing``), while it has ``inflight_max`` slots open, while a frame waits for memory (``frame_memory.py``), or
while answers that wait in slots take more than ``WAITING_BYTES_MAX``. A fetch waits until every request before it is
answered, as all requests do in Kafka: its answer could not leave earlier, and would only take memory. When answers of
all connections take too much (``response_memory.py``), requests whose answers may be large wait for room.
After a large request that is not answered yet nothing is read until the loop's next turn.

The end. A peer that has half-closed its connection is answered what it has asked for, then it is closed; so is one that
has sent something that can't be understood. Kafka, which serves one request of a connection at a time, does the same.
"""

from __future__ import annotations

import asyncio
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, cast

from headpond.broker.net.answering import Answering
from headpond.broker.requests.context import ANONYMOUS, ListenerInfo, Principal
from headpond.protocol.errors import MalformedMessage, ProtocolError
from headpond.protocol.frame import SIZE_BYTES, FrameReader, InvalidFrameSize
from headpond.protocol.frame_memory import ReceiveBuffer

if TYPE_CHECKING:
    from headpond.broker.handlers.groups.heartbeat import LastHeartbeat
    from headpond.broker.handlers.produce.held import Prepared
    from headpond.broker.handlers.produce.wire import ProducePrefix
    from headpond.broker.net.server import Server

# Above this many bytes not yet taken by the peer the connection stops serving; about one socket buffer.
WRITE_BUFFER_BYTES_MAX = 262_144
_read_key_version_correlation = Struct(">ii").unpack_from
_read_start = Struct(">iii").unpack_from  # size, key and version, correlation id
_START_BYTES = 12
# Responses collected while one chunk is served are handed over in one write, at the latest at this size.
COLLECTED_BYTES_MAX = 1_048_576
HEADER_BYTES_MIN = 8
LARGE_FRAME_BYTES = 262_144
"""One that is not answered at once ends the connection's turn. The loop reads on while a peer fills the buffer, and
before it stops neither does the sync that is waited for begin nor an answer leave (docs/decisions/0006)."""


class Connection(Answering):
    __slots__ = (
        "_awaits_room",
        "_awaits_turn",
        "_gives_way",
        "_reader",
        "_receive_buffer",
        "_starved",
        "active_tick",
        "is_ending",
        "last_heartbeat",
        "listener",
        "prepared_produce",
        "principal",
        "produce_prefix",
    )

    def __init__(self, server: Server, listener: ListenerInfo) -> None:
        super().__init__(server)
        self.listener = listener
        self.principal: Principal = ANONYMOUS
        self.active_tick = server.tick
        self.is_ending = False  # nothing more is read; it is closed when everything is answered
        self.produce_prefix: ProducePrefix | None = None
        self.prepared_produce: Prepared | None = None
        self.last_heartbeat: LastHeartbeat | None = None
        self._reader = FrameReader(server.frame_memory, server.frame_bytes_max, self)
        self._receive_buffer: ReceiveBuffer = server.receive_buffer
        self._gives_way = False
        self._starved = False
        self._awaits_turn = False
        self._awaits_room = False

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        peer = transport.get_extra_info("peername")
        self.peer_host = self._reader.host = str(peer[0]) if isinstance(peer, tuple) else ""
        self.server.connection_opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._reader.release()
        slots, self._slots = self._slots, deque()
        for slot in slots:
            self.server.timed_slots.pop(slot, None)
            slot.abandon()
        self._collected.clear()
        self._count(0)
        if self._awaits_room:
            self.server.response_memory.forget(self)
        self.server.connection_closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        reader = self._reader
        return reader.get_buffer() if reader.has_own else self._receive_buffer.offered

    def buffer_updated(self, nbytes: int) -> None:
        server = self.server
        server.received_bytes += nbytes
        self.active_tick = server.tick
        reader = self._reader
        if nbytes > _START_BYTES and not (reader.has_own or self._held or self._slots or self._write_paused):
            # By far the most common chunk is one whole request of a hot API: a straight line for it.
            size_bytes, key_version, correlation_id = _read_start(reader.buffer)
            hot = server.hot_handlers.get(key_version)
            if hot is not None and size_bytes + SIZE_BYTES == nbytes <= server.frame_bytes_max:
                reader.received_one_frame(nbytes)
                try:
                    answer = hot(
                        self, reader.buffer, reader.view, SIZE_BYTES, nbytes, key_version & 0xFFFF, correlation_id
                    )
                except Exception as error:
                    self._refuse(error)
                else:
                    if answer is not None:
                        self._send_or_collect(answer)
                        return
                    if len(self._slots) == 1 < server.inflight_max and not self._held and not self._collected:
                        return  # it is parked
                self._served()
                return
        reader.received(nbytes)
        self._serve()

    def eof_received(self) -> bool:
        """The peer sends nothing more, and may still read. True: leave the other direction open."""
        if self._transport.get_extra_info("sslcontext") is not None:
            return False  # TLS can't be half-closed
        self._reading_paused = True  # there is nothing to read, whatever happens
        self.is_ending = True
        self._end_if_answered()
        return not self._transport.is_closing()

    # --- called by the dispatcher and the handlers

    def hold(self) -> None:
        """Serve no further request until ``unhold``: the current one has not taken effect yet."""
        self._held += 1

    def unhold(self) -> None:
        """Called by what has served others as well, and goes on for them: nothing may come out."""
        self._held -= 1
        if not self._held:
            self._resume_safely()

    def serve_again_later(self) -> None:
        """The current request must wait before it takes effect: put it back; the caller holds the connection."""
        self._reader.unread_frame()

    def put_out(self, what: str) -> None:
        """It holds memory that others wait for: they have it now."""
        self.server.note_put_out(self, what)
        if not self.is_working:  # else a request may be appended from there: it goes when the connection is lost
            self._reader.release()
        self._count(0)
        self.abort()

    def refuse(self) -> None:
        """Close it because of the current request, after the answers to those before it."""
        if self._held:  # it is being served: its own slot would be waited for, too
            self.close()
        else:
            self.is_ending = True
            self._reader.release()

    def there_is_room(self) -> None:
        self._awaits_room = False
        self._resume_safely()

    def frame_memory_is_there(self) -> None:
        self._starved = False
        self.server.call_soon(self._resume_safely)

    @property
    def is_working(self) -> bool:
        """The broker is at work for it, and its next request waits for that."""
        return self._held > self._is_full

    @property
    def is_busy(self) -> bool:
        """A request of this connection is being served; it is not idle however long that takes. One whose peer does not
        take its responses is, and one whose peer may be gone for all we know."""
        waits_for_us = bool(self._slots) or self._held > 0 or self._starved or self._awaits_room
        return waits_for_us and not self._write_paused and not self.is_ending

    @property
    def is_closing(self) -> bool:
        """It was told to close, and waits for its peer to take what was sent before."""
        return not self.closed and self._transport.is_closing()

    # --- inside

    def _serve(self) -> None:
        reader, server = self._reader, self.server
        small_answer_handlers = server.small_answer_handlers
        inflight_max = server.inflight_max
        slots = self._slots
        had_large = False
        self._awaits_turn = False
        self._serving = True
        try:
            while not self._held and not self._write_paused and len(slots) < inflight_max and reader.next_frame():
                start, end = reader.start, reader.end
                if not HEADER_BYTES_MIN <= end - start < LARGE_FRAME_BYTES:
                    if end - start < HEADER_BYTES_MIN:
                        raise MalformedMessage("a request is shorter than its header")
                    had_large = True
                key_version, correlation_id = _read_key_version_correlation(reader.buffer, start)
                hot = small_answer_handlers.get(key_version)
                if hot is not None:
                    answer = hot(self, reader.buffer, reader.view, start, end, key_version & 0xFFFF, correlation_id)
                    if answer is not None:
                        self.respond(answer)
                elif not self._serve_in_turn(key_version, correlation_id):
                    break
                if self._collected_bytes > COLLECTED_BYTES_MAX:
                    self._flush()
        except Exception as error:
            self._refuse(error)
        self._serving = False
        if had_large and slots and not self._gives_way:
            self._gives_way = True
            server.call_soon(self._go_on)
        self._served()

    def _serve_in_turn(self, key_version: int, correlation_id: int) -> bool:
        """Serve a request whose answer may be large. False: it would wait in memory, so the request waits instead."""
        reader, server = self._reader, self.server
        if server.response_memory.is_full:
            reader.unread_frame()
            self._wait_for_room()
            return False
        hot = server.hot_handlers.get(key_version)
        if hot is None:
            server.dispatcher.serve(self, reader.buffer, reader.start, reader.end, key_version, correlation_id)
            return True
        if self._slots:
            reader.unread_frame()
            self._awaits_turn = True
            return False
        version = key_version & 0xFFFF
        answer = hot(self, reader.buffer, reader.view, reader.start, reader.end, version, correlation_id)
        if answer is not None:
            self.respond(answer)
        return True

    def _wait_for_room(self) -> None:
        if not self._awaits_room:
            self._awaits_room = True
            self.server.response_memory.wait(self)
            self.server.watch_memory()

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, InvalidFrameSize):
            self.server.refuse_frame(self, error)
        elif isinstance(error, ProtocolError):
            self.server.refuse_request(self, error)
        else:
            self.server.report_bug(self)

    def _served(self) -> None:
        """Everything that came has been served, or must wait: send what there is, and read on or pause."""
        if self.closed:
            return
        if self._collected:
            self._flush()
        reader = self._reader
        if reader.has_unread or reader.has_own:
            self._starved = not reader.keep()
            if self._starved:
                self.server.watch_memory()
        must_pause = (
            self._held > 0
            or self._gives_way
            or self._write_paused
            or self._starved
            or self._awaits_turn
            or self._awaits_room
            or self.is_ending
            or len(self._slots) >= self.server.inflight_max
        )
        if must_pause is not self._reading_paused:
            self._pause_or_resume_reading()
        if self.is_ending:
            self._end_if_answered()

    def _end_if_answered(self) -> None:
        waits = self._slots or self._held or self._awaits_turn or self._awaits_room or self._write_paused
        if not waits and not self._transport.is_closing():
            # What is left unread, if anything, is half a request.
            self._flush()
            self._transport.close()

    def _go_on(self) -> None:
        """The next turn, after a large request that is not answered yet."""
        self._gives_way = False
        if self._reading_paused:
            self._resume()

    def _resume(self) -> None:
        if not self.closed and not self._serving and not self._starved:
            self._serve()

    def _resume_safely(self) -> None:
        try:
            self._resume()
        except Exception:
            self.server.report_bug(self)

    def _pause_or_resume_reading(self) -> None:
        if not self._transport.is_closing():
            self._reading_paused = not self._reading_paused
            if self._reading_paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
