"""Fetch: v4-v18.

Behaviour   Reads whole batches below the high watermark (read_committed: below the last stable offset), at least one
            batch even if it is larger than every limit. Answered at once when min_bytes are there, a partition has an
            error, a log has diverged, or max_wait is 0; otherwise parked until an append (a flush, with
            headpond.flush=ack) brings enough, or the wait is over. Data that is not in memory is read by a worker;
            no other request waits for it. A request of a session reads and waits for what has changed (``session``).
            A fetch that reads many partitions is served in slices (``wide``).
Versions    v5 log start offset · v7 sessions (KIP-227) · v9 current leader epoch (KIP-320) · v11 rack (KIP-392) · v12
            flexible, last fetched epoch and diverging epoch (KIP-595) · v13 topic ids (KIP-516) · v15 replica state
            (KIP-903) · v16 leader hints (KIP-951) · v17 directory ids (KIP-853) · v18 high watermark of followers
Not done    fetches of followers (replica ids): refused until there are replicas.
"""

from __future__ import annotations

from headpond.broker.handlers.fetch.answer import answer
from headpond.broker.handlers.fetch.long_polls import FLUSH_WAIT_MS, LongPolls, is_enough
from headpond.broker.handlers.fetch.read import (
    FetchReader,
    Reading,
    awaits_flush,
    awaits_flush_where_it_stands,
)
from headpond.broker.handlers.fetch.wanted import Fetch, FetchOpener, TooWide, asked_partitions
from headpond.broker.handlers.fetch.wide import WideFetches
from headpond.broker.handlers.fetch.wire import encode, failed_response
from headpond.broker.net.connection import Connection
from headpond.broker.net.slots import Slot
from headpond.broker.net.timing import serve_timed
from headpond.broker.requests.turns import LARGE_REQUEST_BYTES, PARTITIONS_PER_SLICE, Turns
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
        self._polls = LongPolls(reader, clock, tasks)
        self._polls.serve_wide = self._serve_wide
        self._wide = WideFetches(opener, reader, self._polls, turns, clock, workers, meter)

    @property
    def parked_count(self) -> int:
        return self._polls.room.count

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
        if fetch.is_wide or self._reader.due_count(fetch) > PARTITIONS_PER_SLICE:
            self._serve_wide(fetch, connection.park())
            return
        reading = self._reader.look(fetch)
        if reading.cold:
            self._tasks.spawn("read cold data", self._polls.read_cold(fetch, connection.park(), reading))
        elif not is_enough(fetch, reading):
            self._polls.park(fetch, reading, connection.park(), fetch.max_wait_ms)
        elif reading.size_bytes or reading.is_urgent:
            answer(fetch, reading.results, None)
        else:
            self._found_nothing(fetch, reading)

    def _found_nothing(self, fetch: Fetch, reading: Reading) -> None:
        """What was acknowledged before this request must be found by it, as it would be in Kafka, though it does not
        want to wait."""
        standing = fetch.standing.partitions if fetch.standing is not None else {}
        if len(standing) > PARTITIONS_PER_SLICE:
            self._serve_wide(fetch, fetch.connection.park())
        elif awaits_flush(fetch, reading.results, reading.replicas) or awaits_flush_where_it_stands(
            fetch, standing.values()
        ):
            self._polls.park(fetch, reading, fetch.connection.park(), max(fetch.max_wait_ms, FLUSH_WAIT_MS))
        else:
            answer(fetch, reading.results, None)

    def _serve_wide(self, fetch: Fetch, slot: Slot) -> None:
        self._turns.queue(fetch.connection, "a wide fetch", self._wide.serve(fetch, slot))

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
