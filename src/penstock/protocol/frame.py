"""Length-prefixed frames, cut out of a byte stream without copying where possible. Owns no socket.

A connection reads into ``get_buffer()``, says how much came with ``received(count)``, then takes frames::

    reader.received(count)
    while reader.next_frame():               # False: more bytes are needed
        handle(reader.buffer, reader.start, reader.end)
    reader.keep()                            # what is left over survives until the next read

Most frames are whole inside one read, so all connections share one receive buffer, and a frame is a range in it: **a
frame's bytes are valid only until the handler returns**. Only a frame that did not fit gets memory of its own, from a
pool with a budget: a frame of up to ``EAGER_FRAME_BYTES`` at once while memory is ample, any other grows with what
has really arrived, so that a peer that announces 100 MB and sends nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from penstock.protocol.errors import ProtocolError

SIZE_BYTES = 4
RECEIVE_BUFFER_BYTES = 1_048_576
EAGER_FRAME_BYTES = 2_097_152
SMALLEST_BUFFER_BYTES = 16_384
POOLED_BYTES_MAX = 16_777_216  # idle buffers kept for reuse; beyond it they go back to the allocator

_read_size = Struct(">i").unpack_from


class InvalidFrameSize(ProtocolError):
    """The length prefix is negative or above the limit: not this protocol, or a request that is too large."""

    def __init__(self, size_bytes: int, first_bytes: bytes) -> None:
        super().__init__(f"invalid frame size {size_bytes}")
        self.size_bytes = size_bytes
        self.first_bytes = first_bytes


class ReceiveBuffer:
    """The memory that all connections of a process read into, one read at a time."""

    __slots__ = ("buffer", "view")

    def __init__(self, size_bytes: int = RECEIVE_BUFFER_BYTES) -> None:
        self.buffer = bytearray(size_bytes)
        self.view = memoryview(self.buffer)


class BufferPool:
    """Buffers for frames in progress, within a budget over all connections."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.in_use_bytes = 0
        self._idle: dict[int, list[bytearray]] = {}
        self._idle_bytes = 0
        self._waiting: list[Callable[[], None]] = []

    def take(self, size_bytes: int, *, beyond_budget: bool = False) -> bytearray | None:
        """A buffer of at least that size; None when the budget is used up (``when_free`` tells when to try again)."""
        capacity = max(SMALLEST_BUFFER_BYTES, 1 << (size_bytes - 1).bit_length())
        if self.in_use_bytes and self.in_use_bytes + capacity > self.budget_bytes and not beyond_budget:
            return None
        self.in_use_bytes += capacity
        idle = self._idle.get(capacity)
        if idle:
            self._idle_bytes -= capacity
            return idle.pop()
        return bytearray(capacity)

    def give_back(self, buffer: bytearray) -> None:
        capacity = len(buffer)
        self.in_use_bytes -= capacity
        if self._idle_bytes + capacity <= POOLED_BYTES_MAX:
            self._idle.setdefault(capacity, []).append(buffer)
            self._idle_bytes += capacity
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()

    def when_free(self, callback: Callable[[], None]) -> None:
        self._waiting.append(callback)

    @property
    def is_ample(self) -> bool:
        """Little is in use: a frame may get all its memory before it has arrived, which spares it copies."""
        return self.in_use_bytes < self.budget_bytes // 4

    @property
    def has_waiters(self) -> bool:
        return bool(self._waiting)


class FrameReader:
    """The receiving side of one connection."""

    __slots__ = (
        "_end",
        "_frame_bytes_max",
        "_next",
        "_own",
        "_pool",
        "_shared",
        "buffer",
        "end",
        "has_own",  # it holds memory of its own: for a frame in progress, or for frames that wait to be taken
        "start",
        "view",
    )

    def __init__(self, shared: ReceiveBuffer, pool: BufferPool, frame_bytes_max: int) -> None:
        self._shared = shared
        self._pool = pool
        self._frame_bytes_max = frame_bytes_max
        self._own: bytearray | None = None
        self.has_own = False
        # Unread bytes are buffer[_next:_end]; the current frame's body is buffer[start:end].
        self.buffer = shared.buffer
        self.view = shared.view
        self._next = self._end = self.start = self.end = 0

    @property
    def has_unread(self) -> bool:
        return self._next != self._end

    def get_buffer(self) -> memoryview:
        """Where the next bytes are to be read into; never empty after a successful ``keep``."""
        if self._own is None:
            return self.view
        return self.view[self._end : self._wanted_end()]

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
        """Make what is unread survive until the next read. False: no memory for it now; call again when the pool has
        some (``BufferPool.when_free``), and do not read meanwhile."""
        unread_bytes = self._end - self._next
        if unread_bytes == 0:
            self.release()
            return True
        if self._own is not None and self._frame_end() <= self._end >= self._next + SIZE_BYTES:
            return True  # a whole frame waits to be taken: nothing is read before that
        if self._own is None or self._next > 0:
            return self._move(unread_bytes, self._first_capacity(unread_bytes), beyond_budget=True)
        if self._wanted_end() > self._end:
            return True
        grown = max(self._end + 1, min(self._frame_end(), 2 * len(self._own)))
        return self._move(unread_bytes, grown, beyond_budget=False)

    def release(self) -> None:
        """Give memory of our own back; unread bytes are dropped."""
        if self._own is not None:
            own, self._own = self._own, None
            self.has_own = False
            self.buffer, self.view = self._shared.buffer, self._shared.view
            self._pool.give_back(own)
        self._next = self._end = 0

    def _frame_end(self) -> int:
        """Where the frame in progress will end in our own buffer (as far as its length is known)."""
        if self._end - self._next < SIZE_BYTES:
            return self._next + SIZE_BYTES
        (size_bytes,) = _read_size(self.buffer, self._next)
        return self._next + SIZE_BYTES + max(0, min(int(size_bytes), self._frame_bytes_max))

    def _wanted_end(self) -> int:
        """Read exactly to the end of a frame whose length is known: what follows is for the shared buffer again."""
        assert self._own is not None
        if self._end - self._next < SIZE_BYTES:
            return len(self._own)
        return min(len(self._own), max(self._frame_end(), self._end))

    def _first_capacity(self, unread_bytes: int) -> int:
        wanted = self._frame_end() - self._next
        is_eager = wanted <= EAGER_FRAME_BYTES and self._pool.is_ample
        return max(unread_bytes, wanted) if is_eager else unread_bytes + 1  # there must be room to read into

    def _move(self, unread_bytes: int, capacity: int, *, beyond_budget: bool) -> bool:
        # What one read brought (at most the shared buffer) is kept even beyond the budget, for it has arrived already.
        own = self._pool.take(capacity, beyond_budget=beyond_budget)
        if own is None:
            return False
        own[:unread_bytes] = self.view[self._next : self._end]
        previous, self._own = self._own, own
        self.has_own = True
        self.buffer, self.view = own, memoryview(own)
        self._next, self._end = 0, unread_bytes
        if previous is not None:
            self._pool.give_back(previous)
        return True
