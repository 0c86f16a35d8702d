"""A produce for many partitions, in slices: each looks at ``PARTITIONS_PER_SLICE`` of them at most.

It takes its turn (``requests.turns``) and holds its connection until it has taken effect. Its batches stay where they
were received: the frame is put back, and when all is appended it is served once more, only to be taken from there
(``Served``). A connection that is lost gives that memory away: so nothing of it is looked at any more.

A worker decodes the request and encodes the answer. A topic with many partitions is cut into rows of a slice at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from headpond.broker.handlers.produce.held import NeedsLook, Prepared, Room, make_room
from headpond.broker.handlers.produce.kept import ZSTD_SINCE, Topic, decode, entries_of
from headpond.broker.handlers.produce.parts import ProduceParts
from headpond.broker.handlers.produce.refusals import failed_result
from headpond.broker.handlers.produce.transactional import Admitted, Ask, producers_of
from headpond.broker.handlers.produce.waiting import Wait, Waiting, WaitingAnswers
from headpond.broker.handlers.produce.wire import Result, response
from headpond.broker.net.connection import Connection
from headpond.broker.net.slots import Slot
from headpond.broker.replicas.replicas import Replica
from headpond.broker.requests.turns import PARTITIONS_PER_SLICE, check_count
from headpond.coordination.home import Producer
from headpond.coordination.slices import Work
from headpond.model import BrokerError, ErrorCode, StorageFailed
from headpond.protocol.schema.produce import ProduceRequest

if TYPE_CHECKING:
    from headpond.broker.handlers.produce.produce import ProduceHandler

Slice = tuple[int, list[Topic]]
"""The number of its first row, and its rows."""


class Served(Prepared):
    """A wide request that has taken effect: its frame is only to be taken out of the receive memory."""

    __slots__ = ("newest_before",)

    def __init__(self, since_s: float, newest_before: Slot | None) -> None:
        super().__init__(since_s)
        self.newest_before = newest_before  # the slot before its own


class WideProduces:
    def __init__(self, produces: ProduceHandler, parts: ProduceParts) -> None:
        self._produces = produces
        self._waiting = parts.waiting
        self._turns = parts.turns
        self._clock = parts.clock
        self._tasks = parts.tasks
        self._looks = parts.looks
        self._workers = parts.workers
        self._meter = parts.meter

    async def serve(
        self, connection: Connection, body: memoryview, start: int, version: int, correlation_id: int
    ) -> None:
        """The work of a wide request, at its turn. Raises ``MalformedMessage``."""
        since_s = self._clock.monotonic()
        message, client_id = await self._workers.run(_decode, body, start, version)
        wide = _Wide(connection, message, client_id, version, correlation_id)
        await self._turns.slices.finish(wide.find_topics(self._produces))
        admission = await self._admitted(wide, since_s)
        if connection.closed:
            return
        connection.prepared_produce = Served(since_s, connection.newest_slot)
        slot = connection.park() if message.acks else None
        await self._append(wide, slot, admission)

    # --- before anything is appended

    async def _admitted(self, wide: _Wide, since_s: float) -> _Admission | ErrorCode:
        """Everything that must happen before the request takes effect, as for any other; a code refuses it."""
        prepared: Prepared | None = None
        while True:
            now_ms = self._clock.now_ms()
            admission = await self._turns.slices.finish(self._admit(wide, prepared, now_ms))
            if wide.connection.closed:
                return admission
            transactional_id = wide.message.transactional_id
            if admission.has_transactional:
                refused = self._produces.refuse_transaction(wide.connection, transactional_id, admission.producers)
                if refused is not None:
                    return refused
            looks, rooms, asks = admission.looks, admission.rooms, admission.asks
            if not (looks or rooms or asks):
                return admission
            if prepared is None:
                prepared = Prepared(since_s)
            await self._turns.slices.finish(_keep_rewritten(prepared, admission))
            ask = None
            if asks:
                ask = partial(self._produces.transactions.ask, transactional_id or "", wide.version, asks)
            zstd_allowed = wide.version >= ZSTD_SINCE
            async with self._turns.aside():
                look = self._looks.begin(wide.connection)
                await prepared.prepare(looks, rooms, look, now_ms, zstd_allowed=zstd_allowed, ask=ask)

    def _admit(self, wide: _Wide, prepared: Prepared | None, now_ms: int) -> Work[_Admission]:
        found = _Admission(now_ms, prepared)
        transactions, version = self._produces.transactions, wide.version
        for first, rows in wide.slices():
            if wide.connection.closed:
                break
            outcomes, looks, rooms, has_transactional = self._produces.admit(
                rows, wide.message.acks, version, now_ms, prepared, first
            )
            found.outcomes.append((first, outcomes))
            found.looks += looks
            found.rooms += rooms
            if has_transactional:
                found.has_transactional = True
                found.producers |= producers_of(outcomes)
                found.asks += transactions.asks(outcomes, version, prepared.words if prepared is not None else {})
            yield None
        return found

    # --- appending

    async def _append(self, wide: _Wide, slot: Slot | None, admission: _Admission | ErrorCode) -> None:
        answers = _WideAnswers(slot, wide, self, self._waiting) if slot is not None else None
        has_failed = False
        for number, (first, rows) in enumerate(wide.slices()):
            await self._turns.slices.turn()
            waits: list[Wait] = []
            if isinstance(admission, ErrorCode):
                results = _refused(admission, rows)
            else:
                await self._make_room(admission, number, rows)
                if wide.connection.closed:
                    return  # what was appended stays, as ever
                results, waits = self._append_slice(wide, admission, number, first, rows)
            for row in results:
                for result in row:
                    if result.code:
                        has_failed = True
                        self._meter.failed(result.code)
            if answers is not None:
                answers.add(results, waits)
        if answers is not None:
            answers.has_all(wide.message.timeout_ms)
        elif has_failed:
            wide.connection.close()

    async def _make_room(self, admission: _Admission, number: int, rows: list[Topic]) -> None:
        """Others may have used up what there was when the request was admitted, or a log's files may be changing."""
        _, outcomes = admission.outcomes[number]
        out_of_room: dict[Replica, StorageFailed] = {}
        while rooms := _without_room(rows, outcomes, out_of_room, admission.now_ms):
            async with self._turns.aside():
                out_of_room.update(await make_room(rooms, admission.now_ms))

    def _append_slice(
        self, wide: _Wide, admission: _Admission, number: int, first: int, rows: list[Topic]
    ) -> tuple[list[list[Result]], list[Wait]]:
        """The results, and what has to be committed before they are told."""
        _, outcomes = admission.outcomes[number]
        admission.outcomes[number] = (first, [])  # let go bit by bit
        return self._produces.append(
            rows, outcomes, wide.version, wide.message.acks, admission.now_ms, admission.prepared, first
        )

    # --- answering

    def answer(self, slot: Slot, wide: _Wide, results: list[list[Result]]) -> None:
        self._tasks.spawn("answer a wide produce", self._answer(slot, wide, results))

    async def _answer(self, slot: Slot, wide: _Wide, results: list[list[Result]]) -> None:
        slot.complete((await self._workers.run(wide.response, results),))
        await self._turns.slices.finish(_let_go(results))

    def fail_in_slices(self, failing: Work[None]) -> None:
        self._tasks.spawn("time out a wide produce", self._turns.slices.finish(failing))


class _Wide:
    """One request: its topics in rows, each with so many partitions as a slice looks at, or fewer."""

    def __init__(
        self,
        connection: Connection,
        message: ProduceRequest,
        client_id: str | None,
        version: int,
        correlation_id: int,
    ) -> None:
        self.connection = connection
        self.message = message
        self.version = version
        self._client_id = client_id
        self._correlation_id = correlation_id
        self._rows: list[Topic] = []
        self._topic_of: list[int] = []  # by row
        self._named: list[tuple[str, bytes]] = []

    def find_topics(self, produces: ProduceHandler) -> Work[None]:
        """The message is used up."""
        looked = 0
        topics, self.message.topic_data = self.message.topic_data, []
        topics.reverse()
        while topics and not self.connection.closed:
            topic = topics.pop()
            replicas = produces.topics.find(self.connection, self.version, topic.name, topic.topic_id, self._client_id)
            number = len(self._named)
            self._named.append((topic.name, topic.topic_id))
            partitions = topic.partition_data
            looked += 1
            for at in range(0, len(partitions), PARTITIONS_PER_SLICE):
                topic.partition_data = partitions[at : at + PARTITIONS_PER_SLICE]
                self._rows.append((replicas, entries_of(topic)))
                self._topic_of.append(number)
                looked += len(topic.partition_data)
                if looked >= PARTITIONS_PER_SLICE:
                    looked = 0
                    yield None
            if looked >= PARTITIONS_PER_SLICE:
                looked = 0
                yield None

    def slices(self) -> Iterator[Slice]:
        """Always the same."""
        first, count = 0, 0
        rows: list[Topic] = []
        for number, row in enumerate(self._rows):
            if rows and count + len(row[1]) > PARTITIONS_PER_SLICE:
                yield first, rows
                first, count, rows = number, 0, []
            rows.append(row)
            count += len(row[1])
        if rows:
            yield first, rows

    def response(self, results: list[list[Result]]) -> bytes:
        """For a worker."""
        # A topic without partitions is not answered for, as in Kafka.
        by_topic: dict[int, list[Result]] = {}
        for number, row in zip(self._topic_of, results, strict=True):
            by_topic.setdefault(number, []).extend(row)
        topics = ((*self._named[number], row) for number, row in by_topic.items())
        return response(self.version, self._correlation_id, topics)


class _Admission:
    """What was found out before anything is appended."""

    def __init__(self, now_ms: int, prepared: Prepared | None) -> None:
        self.now_ms = now_ms
        self.prepared = prepared
        self.outcomes: list[tuple[int, list[list[Result | Admitted]]]] = []  # by slice, with its first row
        self.looks: list[NeedsLook] = []
        self.rooms: list[Room] = []
        self.asks: list[Ask] = []
        self.has_transactional = False
        self.producers: set[Producer] = set()


class _WideAnswers(WaitingAnswers):
    """Waits for more partitions with each slice, fails in slices, and is encoded by a worker."""

    __slots__ = ("_is_failing", "_produces", "_wide")

    def __init__(self, slot: Slot, wide: _Wide, produces: WideProduces, waiting: Waiting) -> None:
        super().__init__(slot, wide.response, [], waiting)
        self._is_failing = False
        self._wide = wide
        self._produces = produces

    def add(self, results: list[list[Result]], waits: list[Wait]) -> None:
        self._results += results
        self.wait_for(waits)

    def failed(self, error: BrokerError) -> None:
        if not self._is_failing:
            self._is_failing = True
            self._produces.fail_in_slices(self._fail(error))

    def _fail(self, error: BrokerError) -> Work[None]:
        for count, part in enumerate(self._parts, 1):
            part.failed(error)
            if not count % PARTITIONS_PER_SLICE:
                yield None

    def _finish(self) -> None:
        self._produces.answer(self._slot, self._wide, self._results)


def _decode(body: memoryview, start: int, version: int) -> tuple[ProduceRequest, str | None]:
    """For a worker."""
    message, client_id = decode(body, start, version)
    check_count(len(message.topic_data))
    for topic in message.topic_data:
        check_count(len(topic.partition_data))
    return message, client_id


def _refused(code: ErrorCode, rows: list[Topic]) -> list[list[Result]]:
    return [[Result(entry[0], code) for entry in entries] for _, entries in rows]


def _without_room(
    rows: list[Topic],
    outcomes: list[list[Result | Admitted]],
    out_of_room: Mapping[Replica, StorageFailed],
    now_ms: int,
) -> list[Room]:
    """Batches that their logs have no room for. Those that could not get it have failed."""
    rooms: list[Room] = []
    for (_, entries), outcome in zip(rows, outcomes, strict=True):
        for at, one in enumerate(outcome):
            if isinstance(one, Result):
                continue
            replica, batch, header = one
            if replica in out_of_room:
                outcome[at] = failed_result(entries[at][0], out_of_room[replica])
            elif not replica.partition.log.can_append(len(batch), header.max_timestamp, now_ms):
                rooms.append((replica, len(batch), header.max_timestamp))
    return rooms


def _keep_rewritten(prepared: Prepared, admission: _Admission) -> Work[None]:
    for first, outcomes in admission.outcomes:
        prepared.keep_rewritten(outcomes, first)
        yield None


def _let_go(results: list[list[Result]]) -> Work[None]:
    count = 0
    while results:
        count += 1 + len(results.pop())
        if count >= PARTITIONS_PER_SLICE:
            count = 0
            yield None
