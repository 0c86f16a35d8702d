"""Fetch: v4-v18.

Behaviour   Reads whole batches below the high watermark (read_committed: below the last stable offset), at least one
            batch even if it is larger than every limit. Answered at once when min_bytes are there, a partition has an
            error, a log has diverged, or max_wait is 0; otherwise parked until an append (a flush, with
            headpond.flush=ack) brings enough, or the wait is over. Data that is not in memory is read by a worker;
            no other request waits for it. A fetch of many partitions is served in slices (``wide``).
Versions    v5 log start offset · v7 sessions (KIP-227) · v9 current leader epoch (KIP-320) · v11 rack (KIP-392) · v12
            flexible, last fetched epoch and diverging epoch (KIP-595) · v13 topic ids (KIP-516) · v15 replica state
            (KIP-903) · v16 leader hints (KIP-951) · v17 directory ids (KIP-853) · v18 high watermark of followers
Not done    fetches of followers (replica ids): refused until there are replicas.
"""

from __future__ import annotations

from headpond.broker.handlers.fetch.answer import answer, response, told
from headpond.broker.handlers.fetch.read import FetchReader, Reading, awaits_flush
from headpond.broker.handlers.fetch.wanted import Fetch, FetchOpener, TooWide, asked_partitions
from headpond.broker.handlers.fetch.wide import FLUSH_WAIT_MS, WideFetches, has_undecided, is_enough
from headpond.broker.handlers.fetch.wire import encode, failed_response
from headpond.broker.net.connection import Connection
from headpond.broker.net.slots import Slot
from headpond.broker.net.timing import serve_timed
from headpond.broker.replicas.parked_fetch import ParkedFetch, ParkedRoom
from headpond.broker.requests.turns import LARGE_REQUEST_BYTES, Turns
from headpond.model import ErrorCode
from headpond.ports import Clock, Tasks, Workers
from headpond.protocol.apis import request_decoder
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.header import decode_request_header
from headpond.telemetry.requests import RequestMeter

# Decoded, a request takes many times its size; a real one of this size would name 300,000 partitions.
REQUEST_BYTES_MAX = 8_388_608


class FetchHandler:
    def __init__(
        self,
        *,
        opener: FetchOpener,
        reader: FetchReader,
        turns: Turns,
        clock: Clock,
        tasks: Tasks,
        workers: Workers,
        meter: RequestMeter,
    ) -> None:
        self._meter = meter
        self._opener = opener
        self._reader = reader
        self._turns = turns
        self._clock = clock
        self._tasks = tasks
        self._room = ParkedRoom()
        self._wide = WideFetches(opener, reader, self._room, turns, clock, workers, meter)

    @property
    def parked_count(self) -> int:
        return self._room.count

    def receive(
        self,
        connection: Connection,
        buffer: bytearray,
        view: memoryview,
        start: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> None:
        meter = self._meter
        meter.left -= 1
        if not meter.left:
            frame = (buffer, view, start, end, version, correlation_id)
            serve_timed(self.receive, meter, self._clock, connection, *frame)
            return
        if end - start > LARGE_REQUEST_BYTES:
            self._receive_wide(connection, view, start, end, version, correlation_id)
            return
        body = view[:end]
        _, position = decode_request_header(body, start)
        request, _ = request_decoder(1, version)(body, position)
        if not 0 <= request.isolation_level <= 1:
            meter.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            asked = asked_partitions(request, by_topic_id=False)
            connection.respond(*failed_response(version, correlation_id, request.session_id, asked.values()))
            return
        fetch = self._opener.open(connection, request, version, correlation_id)
        if isinstance(fetch, ErrorCode):
            meter.failed(fetch)
            connection.respond(*encode(version, correlation_id, (), error_code=fetch))
            return
        if isinstance(fetch, TooWide):
            self._receive_wide(connection, view, start, end, version, correlation_id)
            return
        if fetch.is_wide:
            self._turns.queue(connection, "a wide fetch", self._wide.serve(fetch, connection.park()))
            return
        reading = self._reader.read(fetch, fetch.wanted)
        if reading.missing:
            reading.end()
        if reading.cold:
            self._tasks.spawn("read cold data", self._read_cold(fetch, connection.park(), reading))
        elif not is_enough(fetch, reading):
            self._park(fetch, reading, fetch.max_wait_ms)
        elif (
            reading.size_bytes == 0 and not reading.is_urgent and awaits_flush(fetch, reading.results, reading.replicas)
        ):
            # What was acknowledged before this request must be found by it, as it would be in Kafka.
            self._park(fetch, reading, max(fetch.max_wait_ms, FLUSH_WAIT_MS))
        else:
            answer(fetch, reading.results, None)

    def _receive_wide(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> None:
        if end - start > REQUEST_BYTES_MAX:
            raise MalformedMessage(f"a fetch request of {end - start} bytes")
        if self._turns.is_turn_of(connection):
            frame = bytes(view[start:end])
            work = self._wide.serve_frame(connection, connection.park(), frame, version, correlation_id)
            self._turns.take(connection, work)
        else:
            self._meter.uncount()
            self._turns.wait(connection, "a wide fetch")

    async def _read_cold(self, fetch: Fetch, slot: Slot, reading: Reading) -> None:
        """Then answer, whatever min_bytes says."""
        try:
            await self._reader.read_cold(fetch, reading)
        finally:
            answer(fetch, reading.results, slot)

    # --- waiting

    def _park(self, fetch: Fetch, reading: Reading, wait_ms: int) -> None:
        connection, replicas = fetch.connection, reading.replicas
        slot = connection.park()
        count = len(replicas)
        if not self._room.enter(count):
            self._delay(fetch, slot, wait_ms)
            return
        bytes_missing = fetch.min_bytes - reading.size_bytes
        if fetch.read_committed and any(map(has_undecided, replicas)):
            bytes_missing = 1  # what a marker will make visible is appended already, and would not be counted
        parked = ParkedFetch(bytes_missing, lambda force: self._wake(fetch, slot, force=force))

        def leave() -> None:
            self._room.leave(count)
            parked.leave()

        slot.on_abandoned = leave
        parked.stand_at(replicas)
        parked.wait(self._clock.call_later(wait_ms / 1000, parked.time_is_up))

    def _wake(self, fetch: Fetch, slot: Slot, *, force: bool) -> bool:
        """Try to answer a parked fetch; False: not enough yet, go on waiting."""
        reading = self._reader.read(fetch, fetch.wanted)
        if reading.missing:
            reading.end()
        if not reading.cold and not force and not is_enough(fetch, reading):
            return False
        self._room.leave(len(fetch.wanted))
        slot.on_abandoned = None
        if reading.cold:
            self._tasks.spawn("read cold data", self._read_cold(fetch, slot, reading))
        else:
            answer(fetch, reading.results, slot)
        return True

    def _delay(self, fetch: Fetch, slot: Slot, wait_ms: int) -> None:
        """No room to stand at its partitions: answer with what there is, when its time is up. The answer is kept for
        so long: it has one batch at most."""
        connection = fetch.connection
        reading = self._reader.read(fetch, fetch.wanted, self._reader.begin(fetch, one_batch=True))
        reading.end()
        parts = response(fetch, told(fetch, reading.results))
        connection.hold()

        def answer_late() -> None:
            slot.complete(parts)
            connection.unhold()

        timer = self._clock.call_later(wait_ms / 1000, answer_late)
        slot.on_abandoned = timer.cancel
