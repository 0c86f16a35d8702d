"""A fetch of many partitions, in slices: each looks at ``PARTITIONS_PER_SLICE`` of them at most, then the loop turns.

It takes its turn (``requests.turns``) and holds its connection until it is answered. What of it does not touch the
broker's state, decoding and encoding, is a worker's. Between two slices anything may happen: a partition that was read
may get data before the fetch stands at it, so what was read is compared then. A fetch of a session hears of it: it
reads once more what has changed, and waits like any other fetch (``long_polls``) when all is read.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

from headpond.broker.handlers.fetch.answer import response, told
from headpond.broker.handlers.fetch.long_polls import FLUSH_WAIT_MS, LongPolls, is_enough
from headpond.broker.handlers.fetch.read import (
    FetchReader,
    Reading,
    awaits_flush,
    awaits_flush_where_it_stands,
    has_undecided,
)
from headpond.broker.handlers.fetch.session import FetchSession
from headpond.broker.handlers.fetch.session_wait import SessionWait
from headpond.broker.handlers.fetch.wanted import Fetch, FetchOpener, decode_wide
from headpond.broker.handlers.fetch.wire import PartitionData, encode, failed_response
from headpond.broker.net.connection import Connection
from headpond.broker.net.slots import Slot
from headpond.broker.replicas.parked_fetch import ParkedFetch
from headpond.broker.requests.letting_go import emptied
from headpond.broker.requests.turns import PARTITIONS_PER_SLICE, Turns
from headpond.coordination.slices import Work
from headpond.model import BrokerError, ErrorCode
from headpond.ports import Clock, Part, Workers
from headpond.telemetry.requests import RequestMeter


class WideFetches:
    def __init__(
        self,
        opener: FetchOpener,
        reader: FetchReader,
        polls: LongPolls,
        turns: Turns,
        clock: Clock,
        workers: Workers,
        meter: RequestMeter,
    ) -> None:
        self._opener = opener
        self._reader = reader
        self._polls = polls
        self._room = polls.room
        self._turns = turns
        self._clock = clock
        self._workers = workers
        self._meter = meter

    async def serve_frame(
        self, connection: Connection, slot: Slot, frame: bytes, version: int, correlation_id: int
    ) -> None:
        """The work of a large request, at its turn. Raises ``MalformedMessage``."""
        wide = await self._workers.run(decode_wide, frame, version)
        request = wide.request
        if not 0 <= request.isolation_level <= 1:
            self._meter.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            failed = (version, correlation_id, request.session_id, wide.asked.values())
            slot.complete(await self._workers.run(failed_response, *failed))
            await self._let_go(wide.asked, wide.forgotten)
            return
        fetch = await self._turns.slices.finish(self._opener.open_in_slices(connection, wide, version, correlation_id))
        if isinstance(fetch, ErrorCode):
            self._refuse(fetch, slot, version, correlation_id)
            await self._let_go(wide.asked, wide.forgotten)
            return
        is_remembered = fetch.session_is_new and fetch.session is not None
        await self._let_go(wide.forgotten, {} if is_remembered else wide.asked)
        del wide
        await self.serve(fetch, slot)

    async def serve(self, fetch: Fetch, slot: Slot) -> None:
        """Read, wait if need be, and answer; at its turn."""
        if not self._opener.list_wanted(fetch):
            self._refuse(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, slot, fetch.version, fetch.correlation_id)
            return
        if fetch.standing is not None:
            await self._serve_session(fetch, fetch.standing, slot)
            return
        reading = await self._read(fetch)
        wait_ms = await self._wait_ms(fetch, reading)
        if fetch.connection.closed:
            await self._let_go(reading.results, fetch.wanted)
            return  # from here on its slot says so
        if wait_ms <= 0:
            await self._answer(fetch, reading, slot)
        elif self._room.enter(len(fetch.wanted)):
            await self._serve_parked(fetch, reading, slot, wait_ms)
        else:
            await self._let_go(reading.results)
            await self._serve_late(fetch, slot, wait_ms)

    async def _serve_session(self, fetch: Fetch, session: FetchSession, slot: Slot) -> None:
        count = fetch.partition_count
        wait = self._polls.in_session(fetch, session, slot, count)
        is_parked = False
        try:
            while True:
                wait.begin_again()
                reading = await self._read(fetch, wait=wait)
                wait_ms = await self._wait_ms(fetch, reading)
                if fetch.connection.closed or wait_ms <= 0 or not wait.is_woken:
                    break
                fetch.deadline_s = self._clock.monotonic() + wait_ms / 1000
                await self._let_go(reading.results)
            if fetch.connection.closed:
                await self._let_go(reading.results, fetch.wanted)
            elif wait_ms <= 0:
                await self._answer(fetch, reading, slot)
            else:  # nothing has happened since all was read
                is_parked = self._polls.park_there(fetch, slot, wait, count, wait_ms)
                await self._let_go(reading.results)
                if not is_parked:
                    await self._serve_late(fetch, slot, wait_ms)
        finally:
            if not is_parked:
                wait.leave()

    async def _serve_parked(self, fetch: Fetch, reading: Reading, slot: Slot, wait_ms: int) -> None:
        wait = _Wait(fetch.bytes_awaited - reading.size_bytes)
        parked, count = wait.parked, len(fetch.wanted)
        slot.on_abandoned = wait.abandon
        try:
            parked.wait(self._clock.call_later(wait_ms / 1000, parked.time_is_up))
            await self._turns.slices.finish(self._stand(fetch, reading, wait))
            while not wait.is_abandoned:
                await self._let_go(reading.results)
                if not wait.woken.is_set():
                    async with self._turns.aside():
                        await wait.woken.wait()
                wait.woken.clear()
                if wait.is_abandoned:
                    break
                reading = await self._read(fetch)
                if reading.cold or wait.is_over or is_enough(fetch, reading):
                    break
            await self._turns.slices.finish(_leave(parked))
        finally:
            parked.leave()
            self._room.leave(count)
            slot.on_abandoned = None
        if wait.is_abandoned:
            await self._let_go(reading.results, fetch.wanted)
        else:
            await self._answer(fetch, reading, slot)

    async def _serve_late(self, fetch: Fetch, slot: Slot, wait_ms: int) -> None:
        """No room to stand at its partitions: answer with what there is, when its time is up. The answer is kept for
        so long: it has one batch at most."""
        parts = await self._response(fetch, await self._read(fetch, one_batch=True))
        if fetch.connection.closed:
            return
        wait = _Wait(1)
        slot.on_abandoned = wait.abandon
        wait.parked.wait(self._clock.call_later(wait_ms / 1000, wait.parked.time_is_up))
        async with self._turns.aside():
            await wait.woken.wait()
        wait.parked.leave()
        slot.complete(parts)

    async def _answer(self, fetch: Fetch, reading: Reading, slot: Slot) -> None:
        if reading.cold:
            async with self._turns.aside():
                await self._reader.read_cold(fetch, reading)
        slot.complete(await self._response(fetch, reading))

    async def _response(self, fetch: Fetch, reading: Reading) -> list[Part]:
        """Leaves nothing of what was wanted and read."""
        news = await self._turns.slices.finish(_told(fetch, reading.results))
        parts = await self._workers.run(response, fetch, news)
        await self._let_go(reading.results, news, fetch.wanted)
        return parts

    def _refuse(self, code: ErrorCode, slot: Slot, version: int, correlation_id: int) -> None:
        self._meter.failed(code)
        slot.complete(encode(version, correlation_id, (), error_code=code))

    # --- in slices

    async def _let_go(self, *collections: list[Any] | dict[Any, Any]) -> None:
        await self._turns.slices.finish(emptied(list(collections)))

    async def _read(self, fetch: Fetch, *, one_batch: bool = False, wait: SessionWait | None = None) -> Reading:
        return await self._turns.slices.finish(self._read_in_slices(fetch, one_batch, wait))

    def _read_in_slices(self, fetch: Fetch, one_batch: bool, wait: SessionWait | None) -> Work[Reading]:
        self._reader.list_due(fetch)
        reading = self._reader.begin(fetch, one_batch=one_batch)
        for at in range(0, len(fetch.wanted), PARTITIONS_PER_SLICE):
            if fetch.connection.closed:
                return reading
            read_before, bytes_before = len(reading.results), reading.size_bytes
            self._reader.read(fetch, fetch.wanted[at : at + PARTITIONS_PER_SLICE], reading)
            if wait is not None:
                some = slice(read_before, None)
                wait.has_read(reading.results[some], reading.replicas[some], reading.size_bytes - bytes_before)
            yield None
        self._reader.end(fetch, reading)
        return reading

    async def _wait_ms(self, fetch: Fetch, reading: Reading) -> int:
        """How long it may wait; 0: it is answered now."""
        if reading.cold:
            return 0
        if fetch.deadline_s is not None:  # it has waited already
            left_ms = math.ceil((fetch.deadline_s - self._clock.monotonic()) * 1000)
            return 0 if is_enough(fetch, reading) else max(0, left_ms)
        if not is_enough(fetch, reading):
            return fetch.max_wait_ms
        if reading.size_bytes or reading.is_urgent:
            return 0
        is_coming = await self._turns.slices.finish(_awaits_flush(fetch, reading))
        return max(fetch.max_wait_ms, FLUSH_WAIT_MS) if is_coming else 0

    def _stand(self, fetch: Fetch, reading: Reading, wait: _Wait) -> Work[None]:
        parked, results = wait.parked, reading.results
        for at in range(0, len(results), PARTITIONS_PER_SLICE):
            for data in results[at : at + PARTITIONS_PER_SLICE]:
                try:
                    replica = self._reader.replica(fetch, data.wanted)
                except BrokerError:
                    wait.woken.set()  # deleted since it was read
                    continue
                parked.stand_at((replica,))
                partition = replica.partition
                if (
                    partition.high_watermark != data.high_watermark
                    or partition.last_stable_offset != data.last_stable_offset
                    or not partition.is_leader
                ):
                    wait.woken.set()
                    parked.count_no_bytes()  # those that came in between are not counted
                if fetch.read_committed and has_undecided(replica):
                    parked.count_no_bytes()
            yield None


class _Wait:
    """Of a fetch that is parked: its task goes on when it is woken."""

    def __init__(self, bytes_missing: int) -> None:
        self.woken = asyncio.Event()
        self.is_over = False
        self.is_abandoned = False
        self.parked = ParkedFetch(bytes_missing, self._wake)

    def abandon(self) -> None:
        self.is_abandoned = True
        self.woken.set()

    def _wake(self, force: bool) -> bool:
        self.is_over = self.is_over or force
        self.woken.set()
        return False


def _awaits_flush(fetch: Fetch, reading: Reading) -> Work[bool]:
    for at in range(0, len(reading.replicas), PARTITIONS_PER_SLICE):
        some = slice(at, at + PARTITIONS_PER_SLICE)
        if awaits_flush(fetch, reading.results[some], reading.replicas[some]):
            return True
        yield None
    if fetch.standing is not None:
        standing = iter(list(fetch.standing.partitions.values()))
        while some_there := list(islice(standing, PARTITIONS_PER_SLICE)):
            if awaits_flush_where_it_stands(fetch, some_there):
                return True
            yield None
    return False


def _told(fetch: Fetch, results: Sequence[PartitionData]) -> Work[list[PartitionData]]:
    news: list[PartitionData] = []
    for at in range(0, len(results), PARTITIONS_PER_SLICE):
        news += told(fetch, results[at : at + PARTITIONS_PER_SLICE])
        yield None
    return news


def _leave(parked: ParkedFetch) -> Work[None]:
    while parked.leave_some(PARTITIONS_PER_SLICE):
        yield None
