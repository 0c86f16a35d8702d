"""The sending side of a connection: answers leave in the order of its requests, many in one write.

An answer whose turn has not come waits in its slot. Those whose turn has come are collected and leave with the next
write: at the end of what came in one chunk, or of the loop's turn. Answers that can't leave, in slots or because the
peer does not read, are counted (``response_memory.py``); with too many bytes of them in its slots the connection is
held.

``Connection`` is the other side, which reads. It is one object because each request goes through both.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from headpond.broker.net.slots import Slot
from headpond.ports import Buffer, Part

if TYPE_CHECKING:
    from headpond.broker.net.server import Server

BUFFERS = (bytes, bytearray, memoryview)
# Smaller answers are joined into one buffer, larger ones handed over as they are (lent bytes must be: see lookup.py).
JOINED_BYTES_MAX = 65_536
# With more bytes of answers in slots, behind a request that is not answered yet, a connection is not served.
WAITING_BYTES_MAX = 1_048_576


class Answering(asyncio.BufferedProtocol):
    __slots__ = (
        "_collected",
        "_collected_bytes",
        "_held",
        "_is_full",
        "_reading_paused",
        "_serving",
        "_slots",
        "_transport",
        "_unlent_bytes",
        "_waiting_bytes",
        "_write_paused",
        "closed",
        "held_response_bytes",
        "peer_host",
        "server",
    )

    def __init__(self, server: Server) -> None:
        self.server = server
        self.peer_host = ""
        self.closed = False
        self.held_response_bytes = 0  # as counted in the server's response memory
        self._transport: asyncio.Transport
        self._slots: deque[Slot] = deque()
        self._collected: list[Part] = []
        self._collected_bytes = 0
        self._waiting_bytes = 0  # answers in slots
        self._is_full = False  # of such
        self._unlent_bytes: int | None = None  # in the transport at most; None: everything that is there
        self._write_paused = False
        # The reading side's: a request is being served; how many reasons there are to serve none; nothing is read.
        self._serving = False
        self._held = 0
        self._reading_paused = False

    def _resume(self) -> None:
        """On with the next request, unless something else keeps it waiting. ``Connection`` does it."""
        raise NotImplementedError

    def put_out(self, what: str) -> None:
        """It holds memory that others wait for: they have it now. ``Connection`` does it."""
        raise NotImplementedError

    # --- called by the event loop

    def pause_writing(self) -> None:
        self._write_paused = True
        self.recount()

    def resume_writing(self) -> None:
        self._write_paused = False
        self._unlent_bytes = None
        self.recount()
        self._resume()

    # --- called by the dispatcher and the handlers

    def respond(self, *parts: Part) -> None:
        """Answer the current request now (in its order)."""
        if self._slots:
            slot = Slot(self)
            slot.parts = parts
            self._slots.append(slot)
            self._wait_in_slot(parts)
        else:
            self._collect(parts)

    def park(self) -> Slot:
        """Answer the current request later; the next one may be served meanwhile."""
        slot = Slot(self)
        self._slots.append(slot)
        return slot

    def park_in(self, slot: Slot) -> None:
        """The same, for a slot that its owner has made."""
        self._slots.append(slot)

    def slot_completed(self, slot: Slot) -> None:
        if self.server.timed_slots:
            self.server.timed_slot_completed(slot)
        slots = self._slots
        if not slots or slots[0] is not slot:
            if slots and slot.parts is not None:
                self._wait_in_slot(slot.parts)
            return
        slots.popleft()
        self._collect(slot.parts or ())
        if slots and slots[0].parts is not None:
            self._collect_waiting()
        if self._serving:
            return
        if self._collected_bytes >= JOINED_BYTES_MAX:
            self._flush_safely()
        self.server.flush_soon(self)

    def answer_parked(self, slot: Slot, answer: bytes) -> None:
        """``slot`` is complete, with one piece. By far the most common: nothing else is waiting."""
        slots, server = self._slots, self.server
        if len(slots) != 1 or slots[0] is not slot or self._serving or self._reading_paused:
            slot.parts = (answer,)
            self.slot_completed(slot)
            return
        slots.clear()
        if server.timed_slots:
            server.timed_slot_completed(slot)
        try:  # called from a group commit that serves many: nothing may come out
            if not self._transport.is_closing():
                self._send_or_collect(answer)
        except Exception:
            server.report_bug(self)

    def flush_now(self) -> None:
        """End of the turn: one write, and on with what was waiting for a free slot."""
        if not self.closed:
            self._flush()
            if self._reading_paused:
                self._resume()

    @property
    def newest_slot(self) -> Slot | None:
        return self._slots[-1] if self._slots else None

    def recount(self) -> None:
        """Count the answers that can't leave now (``response_memory.py`` says what counts)."""
        unsent_bytes = 0
        if self._write_paused:
            unsent_bytes = self._transport.get_write_buffer_size()
            if self._unlent_bytes is not None:
                unsent_bytes = min(unsent_bytes, self._unlent_bytes)
        self._count(self._waiting_bytes + unsent_bytes)

    def close(self) -> None:
        """Drop the connection without an answer: the protocol's way to refuse what it can't parse."""
        if not self.closed:
            self._held += 1
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        if not self.closed:
            self._held += 1
            self._transport.abort()

    # --- inside

    def _send_or_collect(self, answer: bytes) -> None:
        """With many answers in a turn they leave together at its end, with few of them at once."""
        server = self.server
        if server.answers_at_once and not self._collected:
            server.answers_at_once -= 1
            server.sent_bytes += len(answer)
            self._transport.write(answer)
            return
        self._collected.append(answer)
        self._collected_bytes += len(answer)
        if self._collected_bytes < JOINED_BYTES_MAX:
            server.flush_soon(self)
        else:
            self._flush()

    def _collect(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self._collected.append(part)
            self._collected_bytes += len(part)

    def _wait_in_slot(self, parts: Sequence[Part]) -> None:
        """An answer is ready whose turn has not come."""
        self._waiting_bytes += sum(map(len, parts))
        if self._waiting_bytes > WAITING_BYTES_MAX and not self._is_full:
            self._is_full = True
            self._held += 1
        self.recount()

    def _collect_waiting(self) -> None:
        """Their turn has come."""
        slots = self._slots
        while slots and (parts := slots[0].parts) is not None:
            slots.popleft()
            self._collect(parts)
            self._waiting_bytes -= sum(map(len, parts))
        if self._is_full and self._waiting_bytes <= WAITING_BYTES_MAX:
            self._is_full = False
            self._held -= 1
        self.recount()

    def _count(self, held_bytes: int) -> None:
        change_bytes = held_bytes - self.held_response_bytes
        if change_bytes:
            self.held_response_bytes = held_bytes
            self.server.response_memory.count(self, held_bytes, change_bytes)
            self.server.responses_counted()

    def _flush_safely(self) -> None:
        """Called from a group commit that serves many: nothing may come out."""
        try:
            self._flush()
        except Exception:
            self.server.report_bug(self)

    def _flush(self) -> None:
        collected = self._collected
        if not collected:
            return
        size_bytes, self._collected_bytes = self._collected_bytes, 0
        self.server.sent_bytes += size_bytes
        self._collected = []
        if self._transport.is_closing():
            return
        if size_bytes < JOINED_BYTES_MAX:
            joined = collected[0] if len(collected) == 1 else b"".join(cast(list[Buffer], collected))
            self._transport.write(cast(Buffer, joined))
            if self._write_paused:
                self._sent_more(size_bytes)
        else:
            self._send_large(collected)

    def _send_large(self, parts: list[Part]) -> None:
        """What files have lent is not the broker's memory, as long as it is in the transport."""
        unlent_bytes = sum(len(part) for part in parts if isinstance(part, BUFFERS))
        if self._write_paused:
            self.server.send(self._transport, parts)
            self._sent_more(unlent_bytes)
            return
        self._unlent_bytes = self._transport.get_write_buffer_size() + unlent_bytes
        self.server.send(self._transport, parts)
        if not self._write_paused:
            self._unlent_bytes = None

    def _sent_more(self, unlent_bytes: int) -> None:
        """To a peer that does not read: an answer that was waiting for something else."""
        if self._unlent_bytes is not None:
            self._unlent_bytes += unlent_bytes
        self.recount()
