"""Memory for requests that are partly received, over all connections, within one budget.

A frame's size is in its first four bytes, so memory is *granted for the whole frame* before more than a little of it
is read. A frame that was granted needs nothing more to be completed, and one that waits holds next to nothing: there is
no deadlock.

    large       more than ``ORDINARY_BYTES_MAX``: three quarters of the budget together, so that they never keep an
                ordinary one waiting
    ordinary    whatever is free; three sixteenths of the budget are theirs whatever large ones do, and as long as a
                large one waits they have no more than that
    kept        what was read before it could be asked for: up to ``SMALL_BYTES`` of a frame, and requests behind one
                that holds its connection. Above one sixteenth of the budget every read is of ``SMALL_BYTES`` at most,
                so that the sum stays below the budget and ``SMALL_BYTES`` for each connection

Whoever must wait does so in the order of asking, hosts in turn. Of several hosts, one that has half of the budget gets
nothing more before it gives some back. While others wait, a frame must be *on course* to be complete within
``FRAME_S_MAX`` of its grant; a sender that is not loses its connection, however often it sends a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

SMALL_BYTES = 16_384
"""A frame of up to this size needs no grant, and no more of any other is kept while memory is scarce."""
ORDINARY_BYTES_MAX = 2_097_152
"""Most producers' requests are up to 1 MB."""
GRACE_S = 2.0
FRAME_S_MAX = 30.0
"""To hold the whole budget against those who wait takes 9 MB a second, with requests of any size."""
POOLED_BYTES_MAX = 16_777_216  # idle buffers kept for reuse; beyond it they go back to the allocator
RECEIVE_BUFFER_BYTES = 1_048_576

_SIXTEENTHS_KEPT, _SIXTEENTHS_ORDINARY, _SIXTEENTHS_LARGE = 1, 3, 12


class ReceiveBuffer:
    """The memory that all connections of a process read into, one read at a time."""

    __slots__ = ("buffer", "offered", "view")

    def __init__(self, size_bytes: int = RECEIVE_BUFFER_BYTES) -> None:
        self.buffer = bytearray(size_bytes)
        self.view = memoryview(self.buffer)
        self.offered = self.view  # as much of it as a read may fill now


class Claimant(Protocol):
    """A frame in progress."""

    host: str
    claimed_bytes: int  # 0: nothing is claimed

    @property
    def received_share(self) -> float:
        """How much of it is there, from 0 to 1."""

    def granted(self) -> None: ...

    def put_out(self) -> None:
        """End its connection at once."""


class FrameMemory:
    def __init__(
        self,
        budget_bytes: int,
        frame_bytes_max: int,
        *,
        now_s: Callable[[], float],
        allocate: Callable[[int], bytearray],
        shared: ReceiveBuffer | None = None,
    ) -> None:
        self.shared = shared or ReceiveBuffer()
        self.has_many_hosts = False  # then no host gets more than half
        self._frame_bytes_max = frame_bytes_max
        self._now_s = now_s
        self._allocate = allocate
        self._granted_s: dict[Claimant, float] = {}
        self._ordinary_bytes = 0
        self._large_bytes = 0
        self._kept_bytes = 0
        self._host_bytes: dict[str, int] = {}
        self._waiting_ordinary = _Turns()
        self._waiting_large = _Turns()
        self._idle: dict[int, list[bytearray]] = {}
        self._idle_bytes = 0
        self.resize(budget_bytes)

    def resize(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._kept_bytes_max = budget_bytes * _SIXTEENTHS_KEPT // 16
        self._grants_bytes_max = budget_bytes - self._kept_bytes_max
        # One frame of each kind must fit; with a budget that is hardly larger than that, they do so beyond it.
        self._ordinary_reserve_bytes = max(budget_bytes * _SIXTEENTHS_ORDINARY // 16, ORDINARY_BYTES_MAX)
        self._large_bytes_max = max(budget_bytes * _SIXTEENTHS_LARGE // 16, capacity_for(self._frame_bytes_max + 4))
        self._grant_waiting()

    @property
    def in_use_bytes(self) -> int:
        """What is granted, arrived or not, and what is kept."""
        return self._ordinary_bytes + self._large_bytes + self._kept_bytes

    @property
    def has_waiters(self) -> bool:
        return bool(self._waiting_ordinary or self._waiting_large)

    # --- claims

    def claim(self, claimant: Claimant, frame_bytes: int) -> bool:
        """Memory for a whole frame. False: its turn has not come yet; ``granted`` is called when it has."""
        claimant.claimed_bytes = capacity_for(frame_bytes)
        waiting = self._turns_of(claimant)
        is_next = not waiting or self._next_of(waiting) is None
        if is_next and not self._has_its_share(claimant) and self._fits(claimant.claimed_bytes):
            self._grant(claimant)
            return True
        waiting.add(claimant)
        return False

    def is_granted(self, claimant: Claimant) -> bool:
        return claimant in self._granted_s

    def give_up(self, claimant: Claimant) -> None:
        """The frame is done, or will never be."""
        size_bytes = claimant.claimed_bytes
        if self._granted_s.pop(claimant, None) is None:
            self._turns_of(claimant).remove(claimant)
        else:
            if size_bytes > ORDINARY_BYTES_MAX:
                self._large_bytes -= size_bytes
            else:
                self._ordinary_bytes -= size_bytes
            left = self._host_bytes[claimant.host] - size_bytes
            if left:
                self._host_bytes[claimant.host] = left
            else:
                del self._host_bytes[claimant.host]
        claimant.claimed_bytes = 0
        if self._waiting_ordinary or self._waiting_large:
            self._grant_waiting()

    def off_course(self) -> list[Claimant]:
        """Frames that hold what others wait for and will not be complete in time, as many of them as are needed; those
        of which least has come first."""
        now_s = self._now_s()
        firsts = [*self._waiting_large.firsts(), *self._waiting_ordinary.firsts()]
        # A host that has its share waits for its own frames only.
        waits_for_all = any(not self._has_its_share(first) for first in firsts)
        hosts = {first.host for first in firsts}
        found = []
        for claimant, since_s in self._granted_s.items():
            due_share = (now_s - since_s - GRACE_S) / FRAME_S_MAX
            if claimant.received_share < due_share and (waits_for_all or claimant.host in hosts):
                found.append(claimant)
        found.sort(key=lambda claimant: claimant.received_share)
        missing_bytes = self._waiting_ordinary.claimed_bytes + self._waiting_large.claimed_bytes
        for count, claimant in enumerate(found):
            if missing_bytes <= 0:
                return found[:count]
            missing_bytes -= claimant.claimed_bytes
        return found

    # --- buffers

    def take(self, capacity_bytes: int) -> bytearray:
        """A buffer for what was granted. Fresh ones are not touched: only what arrives becomes memory."""
        idle = self._idle.get(capacity_bytes)
        if idle:
            self._idle_bytes -= capacity_bytes
            return idle.pop()
        return self._allocate(capacity_bytes)

    def give_back(self, buffer: bytearray) -> None:
        capacity_bytes = len(buffer)
        if self._idle_bytes + capacity_bytes <= POOLED_BYTES_MAX:
            self._idle.setdefault(capacity_bytes, []).append(buffer)
            self._idle_bytes += capacity_bytes

    def take_kept(self, size_bytes: int) -> bytearray:
        """A buffer for what has arrived already, or for a small frame: nobody can be asked."""
        buffer = self.take(capacity_for(size_bytes))
        self._kept_bytes += len(buffer)
        self._offer()
        return buffer

    def give_back_kept(self, buffer: bytearray) -> None:
        self._kept_bytes -= len(buffer)
        self._offer()
        self.give_back(buffer)

    # --- inside

    def _offer(self) -> None:
        shared = self.shared
        is_scarce = self._kept_bytes > self._kept_bytes_max
        if is_scarce is (shared.offered is shared.view):
            shared.offered = shared.view[:SMALL_BYTES] if is_scarce else shared.view

    def _turns_of(self, claimant: Claimant) -> _Turns:
        return self._waiting_large if claimant.claimed_bytes > ORDINARY_BYTES_MAX else self._waiting_ordinary

    def _next_of(self, waiting: _Turns) -> Claimant | None:
        """Whose turn it is."""
        return next((first for first in waiting.firsts() if not self._has_its_share(first)), None)

    def _fits(self, size_bytes: int) -> bool:
        ordinary_bytes, large_bytes = self._ordinary_bytes, self._large_bytes
        is_within = ordinary_bytes + large_bytes + size_bytes <= self._grants_bytes_max
        if size_bytes <= ORDINARY_BYTES_MAX:
            is_reserved = ordinary_bytes + size_bytes <= self._ordinary_reserve_bytes
            return is_reserved or (is_within and not self._waiting_large)
        if large_bytes + size_bytes > self._large_bytes_max:
            return False
        return is_within or (not large_bytes and ordinary_bytes <= self._ordinary_reserve_bytes)

    def _has_its_share(self, claimant: Claimant) -> bool:
        if not self.has_many_hosts:
            return False
        has_bytes = self._host_bytes.get(claimant.host, 0)
        return has_bytes > 0 and 2 * (has_bytes + claimant.claimed_bytes) > self._budget_bytes

    def _grant(self, claimant: Claimant) -> None:
        size_bytes = claimant.claimed_bytes
        self._granted_s[claimant] = self._now_s()
        if size_bytes > ORDINARY_BYTES_MAX:
            self._large_bytes += size_bytes
        else:
            self._ordinary_bytes += size_bytes
        self._host_bytes[claimant.host] = self._host_bytes.get(claimant.host, 0) + size_bytes

    def _grant_waiting(self) -> None:
        for waiting in (self._waiting_large, self._waiting_ordinary):
            while True:
                claimant = self._next_of(waiting)
                if claimant is None or not self._fits(claimant.claimed_bytes):
                    break  # nobody goes before it: a large frame would never have its turn
                waiting.take(claimant)
                self._grant(claimant)
                claimant.granted()


class _Turns:
    """Who waits, by host: hosts take turns, and of each the one that came first is next."""

    def __init__(self) -> None:
        self.claimed_bytes = 0
        self._hosts: dict[str, dict[Claimant, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._hosts)

    def add(self, claimant: Claimant) -> None:
        self.claimed_bytes += claimant.claimed_bytes
        self._hosts.setdefault(claimant.host, {})[claimant] = None

    def remove(self, claimant: Claimant) -> None:
        self.claimed_bytes -= claimant.claimed_bytes
        of_host = self._hosts[claimant.host]
        del of_host[claimant]
        if not of_host:
            del self._hosts[claimant.host]

    def firsts(self) -> Iterator[Claimant]:
        """The first of each host, in the order of their turns."""
        for of_host in self._hosts.values():
            yield next(iter(of_host))

    def take(self, claimant: Claimant) -> None:
        self.remove(claimant)
        of_host = self._hosts.pop(claimant.host, None)
        if of_host is not None:
            self._hosts[claimant.host] = of_host  # behind the other hosts


def capacity_for(size_bytes: int) -> int:
    """In steps, so that buffers fit the next frame, too."""
    if size_bytes <= SMALL_BYTES:
        return SMALL_BYTES
    step = 65_536 if size_bytes <= ORDINARY_BYTES_MAX else 1_048_576
    return -(-size_bytes // step) * step
