"""Length-prefixed frames, cut out of a byte stream without copying where possible. Owns no socket.

A connection reads into ``get_buffer()``, says how much came with ``received(count)``, then takes frames::

    reader.received(count)
    while reader.next_frame():               # False: more bytes are needed
        handle(reader.buffer, reader.start, reader.end)
    reader.keep()                            # what is left over survives until the next read

Most frames are whole inside one read, so all connections share one receive buffer, and a frame is a range in it: **a
frame's bytes are valid only until the handler returns**. Only a frame that did not fit gets memory of its own, which
has a budget over all connections (``frame_memory.py``) and may have to be waited for.
"""

from __future__ import annotations

from math import inf
from struct import Struct
from typing import Protocol

from headpond.protocol.errors import ProtocolError
from headpond.protocol.frame_memory import SMALL_BYTES, FrameMemory

SIZE_BYTES = 4

_read_size = Struct(">i").unpack_from


class InvalidFrameSize(ProtocolError):
    """The length prefix is negative or above the limit: not this protocol, or a request that is too large."""

    def __init__(self, size_bytes: int, first_bytes: bytes) -> None:
        super().__init__(f"invalid frame size {size_bytes}")
        self.size_bytes = size_bytes
        self.first_bytes = first_bytes


class Owner(Protocol):
    """Whoever reads."""

    @property
    def is_working(self) -> bool:
        """The broker is at work for an earlier request, or for this one."""

    def frame_memory_is_there(self) -> None:
        """That ``keep`` had to wait for: call it again."""

    def put_out(self, what: str) -> None:
        """End the connection at once: ``what`` it holds is needed by others."""


class FrameReader:
    """The receiving side of one connection."""

    __slots__ = (
        "_end",
        "_frame_bytes_max",
        "_is_claimed",  # the memory of its own is what it has claimed, not something kept
        "_memory",
        "_next",
        "_own",
        "_owner",
        "buffer",
        "claimed_bytes",
        "end",
        "has_own",  # it holds memory of its own: for a frame in progress, or for frames that wait to be taken
        "host",  # whose memory it is
        "start",
        "view",
    )

    def __init__(self, memory: FrameMemory, frame_bytes_max: int, owner: Owner | None = None) -> None:
        """``owner``: for memory that may have to be waited for."""
        self.host = ""
        self._owner = owner
        self.claimed_bytes = 0
        self._memory = memory
        self._frame_bytes_max = frame_bytes_max
        self._own: bytearray | None = None
        self._is_claimed = False
        self.has_own = False
        # Unread bytes are buffer[_next:_end]; the current frame's body is buffer[start:end].
        self.buffer = memory.shared.buffer
        self.view = memory.shared.view
        self._next = self._end = self.start = self.end = 0

    @property
    def has_unread(self) -> bool:
        return self._next != self._end

    @property
    def received_share(self) -> float:
        """How much of the frame in progress is there: 0 to 1; more when only the broker's own work keeps it here."""
        share = (self._end - self._next) / (self._frame_bytes() or SIZE_BYTES)
        is_working = self._owner is not None and self._owner.is_working
        return inf if share >= 1 and is_working else share

    def get_buffer(self) -> memoryview:
        """Where the next bytes are to be read into; never empty after a successful ``keep``."""
        if self._own is None:
            return self._memory.shared.offered
        # Exactly to the end of a frame whose length is known: what follows is for the shared buffer again.
        wanted_end = self._next + (self._frame_bytes() or len(self._own))
        return self.view[self._end : min(len(self._own), max(wanted_end, self._end))]

    def received(self, count: int) -> None:
        if self._own is None:
            self._next, self._end = 0, count
        else:
            self._end += count

    def received_one_frame(self, count: int) -> None:
        """The shared buffer holds one whole frame and nothing else: the same as ``received`` and ``next_frame``."""
        self.start = SIZE_BYTES
        self.end = self._next = self._end = count

    def next_frame(self) -> bool:
        """Step to the next whole frame. Raises ``InvalidFrameSize``."""
        start = self._next + SIZE_BYTES
        if start > self._end:
            return False
        (size_bytes,) = _read_size(self.buffer, self._next)
        if not 0 <= size_bytes <= self._frame_bytes_max:
            raise InvalidFrameSize(size_bytes, bytes(self.view[self._next : min(self._end, self._next + 64)]))
        end = start + size_bytes
        if end > self._end:
            return False
        self.start = start
        self._next = self.end = end
        return True

    def unread_frame(self) -> None:
        """Put the current frame back: ``next_frame`` gives it again."""
        self._next = self.start - SIZE_BYTES

    def keep(self) -> bool:
        """Make what is unread survive until the next read. False: there is no memory for the rest of the frame now; do
        not read, and call this again when the owner is told that there is."""
        unread_bytes = self._end - self._next
        if unread_bytes == 0:
            self.release()
            return True
        frame_bytes = self._frame_bytes()
        if 0 < frame_bytes <= unread_bytes:  # it waits to be taken: nothing is read before that
            if self._own is None:
                self._move(self._memory.take_kept(unread_bytes))
            return True
        if frame_bytes <= SMALL_BYTES:
            if self._own is None or self._next > 0:
                self._move(self._memory.take_kept(SMALL_BYTES))
            return True
        if self._is_claimed:
            return True
        memory = self._memory
        if memory.is_granted(self) if self.claimed_bytes else memory.claim(self, frame_bytes):
            self._move(memory.take(self.claimed_bytes))
            self._is_claimed = True
            return True
        if self._own is None:
            self._move(memory.take_kept(unread_bytes))
        return False

    def release(self) -> None:
        """Give memory of our own back; unread bytes are dropped."""
        if self._own is not None:
            self.has_own = False
            self.buffer, self.view = self._memory.shared.buffer, self._memory.shared.view
            self._give_back(self._own)
            self._own = None
            self._is_claimed = False
        if self.claimed_bytes:
            self._memory.give_up(self)
        self._next = self._end = 0

    def granted(self) -> None:
        if self._owner is not None:
            self._owner.frame_memory_is_there()

    def put_out(self) -> None:
        if self._owner is not None:
            self._owner.put_out("an unfinished request")

    def _frame_bytes(self) -> int:
        """Of the next frame, its length included; 0 as long as that is not known."""
        if self._end - self._next < SIZE_BYTES:
            return 0
        (size_bytes,) = _read_size(self.buffer, self._next)
        return SIZE_BYTES + max(0, min(int(size_bytes), self._frame_bytes_max))

    def _move(self, own: bytearray) -> None:
        unread_bytes = self._end - self._next
        view = memoryview(own)
        view[:unread_bytes] = self.view[self._next : self._end]
        previous, self._own = self._own, own
        self.has_own = True
        self.buffer, self.view = own, view
        self._next, self._end = 0, unread_bytes
        if previous is not None:
            self._give_back(previous)

    def _give_back(self, own: bytearray) -> None:
        if self._is_claimed:
            self._memory.give_back(own)
        else:
            self._memory.give_back_kept(own)
