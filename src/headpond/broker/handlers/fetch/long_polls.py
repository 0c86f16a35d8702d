"""Long polls: fetches that wait until there may be enough to answer them, or their time is up.

A fetch of a session waits in its session (``session_wait.py``), any other one stands at its partitions
(``replicas/parked_fetch.py``). Whoever is woken reads again: at once if that is little, in slices (``wide.py``) if so
much has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.broker.handlers.fetch.answer import answer, response, told
from headpond.broker.handlers.fetch.read import FetchReader, Reading, has_undecided
from headpond.broker.handlers.fetch.session import FetchSession
from headpond.broker.handlers.fetch.session_wait import SessionWait
from headpond.broker.handlers.fetch.wanted import Fetch
from headpond.broker.net.slots import Slot
from headpond.broker.replicas.parked_fetch import ParkedFetch, ParkedRoom
from headpond.broker.requests.turns import PARTITIONS_PER_SLICE
from headpond.ports import Clock, Tasks

# A flush takes a few ms; one that takes longer than this is not waited for.
FLUSH_WAIT_MS = 1_000


def is_enough(fetch: Fetch, reading: Reading) -> bool:
    return (
        reading.size_bytes >= fetch.min_bytes
        or fetch.max_wait_ms <= 0
        or reading.is_urgent
        or not (reading.results or fetch.standing)
    )


class LongPolls:
    def __init__(self, reader: FetchReader, clock: Clock, tasks: Tasks) -> None:
        self._reader = reader
        self._clock = clock
        self._tasks = tasks
        self.room = ParkedRoom()
        self.serve_wide: Callable[[Fetch, Slot], None]  # whoever makes this sets it

    def park(self, fetch: Fetch, reading: Reading, slot: Slot, wait_ms: int) -> None:
        """All that it wants was read in one go, just now."""
        count = fetch.partition_count
        if not self.room.enter(count):
            self._delay(fetch, slot, wait_ms)
        elif fetch.standing is None:
            parked = self._at_its_partitions(fetch, reading, slot, count)
            self._wait(fetch, slot, parked, count, wait_ms)
        else:
            wait = self.in_session(fetch, fetch.standing, slot, count)
            wait.has_read(reading.results, reading.replicas, reading.size_bytes)
            self._wait(fetch, slot, wait, count, wait_ms)

    def in_session(self, fetch: Fetch, session: FetchSession, slot: Slot, count: int) -> SessionWait:
        """Hears of news from now on; see ``park_there``."""

        def wake(force: bool) -> bool:
            return self._wake(fetch, slot, wait, count, force=force)

        wait = SessionWait(
            session,
            min_bytes=fetch.bytes_awaited,
            read_committed=fetch.read_committed,
            new_bytes=lambda wanted, replica: self._reader.new_bytes(fetch, wanted, replica),
            wake=wake,
        )
        return wait

    def park_there(self, fetch: Fetch, slot: Slot, wait: SessionWait, count: int, wait_ms: int) -> bool:
        """It has read everything and was not woken meanwhile. False: there is no room."""
        if not self.room.enter(count):
            return False
        self._wait(fetch, slot, wait, count, wait_ms)
        return True

    async def read_cold(self, fetch: Fetch, slot: Slot, reading: Reading) -> None:
        """Then answer, whatever min_bytes says."""
        try:
            await self._reader.read_cold(fetch, reading)
        finally:
            answer(fetch, reading.results, slot)

    def _at_its_partitions(self, fetch: Fetch, reading: Reading, slot: Slot, count: int) -> ParkedFetch:
        replicas = reading.replicas
        bytes_missing = fetch.bytes_awaited - reading.size_bytes
        if fetch.read_committed and any(map(has_undecided, replicas)):
            bytes_missing = 1  # what a marker will make visible is appended already, and would not be counted
        parked = ParkedFetch(bytes_missing, lambda force: self._wake(fetch, slot, None, count, force=force))
        parked.stand_at(replicas)
        return parked

    def _wait(self, fetch: Fetch, slot: Slot, parked: ParkedFetch, count: int, wait_ms: int) -> None:
        def leave() -> None:
            self.room.leave(count)
            parked.leave()

        slot.on_abandoned = leave
        fetch.deadline_s = self._clock.monotonic() + wait_ms / 1000
        parked.wait(self._clock.call_later(wait_ms / 1000, parked.time_is_up))

    def _wake(self, fetch: Fetch, slot: Slot, wait: SessionWait | None, count: int, *, force: bool) -> bool:
        """Try to answer a parked fetch; False: not enough yet, go on waiting."""
        if self._reader.due_count(fetch) > PARTITIONS_PER_SLICE:
            self._woken(slot, count)
            self.serve_wide(fetch, slot)
            return True
        reading = self._reader.look(fetch)
        if not reading.cold and not force and not is_enough(fetch, reading):
            if wait is not None:
                wait.has_read(reading.results, reading.replicas, 0)
            return False
        self._woken(slot, count)
        if reading.cold:
            self._tasks.spawn("read cold data", self.read_cold(fetch, slot, reading))
        else:
            answer(fetch, reading.results, slot)
        return True

    def _woken(self, slot: Slot, count: int) -> None:
        self.room.leave(count)
        slot.on_abandoned = None

    def _delay(self, fetch: Fetch, slot: Slot, wait_ms: int) -> None:
        """No room to wait for news: answer with what there is, when its time is up. The answer is kept for so long: it
        has one batch at most."""
        connection = fetch.connection
        reading = self._reader.look(fetch, one_batch=True)
        parts = response(fetch, told(fetch, reading.results))
        connection.hold()

        def answer_late() -> None:
            slot.complete(parts)
            connection.unhold()

        timer = self._clock.call_later(wait_ms / 1000, answer_late)
        slot.on_abandoned = timer.cancel
