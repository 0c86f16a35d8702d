"""What a Fetch request wants: its session settled, its partitions listed, its limits worked out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from headpond.broker.handlers.fetch.session import FetchPartition, FetchSession, Key, View
from headpond.broker.handlers.fetch.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSessions,
    remembered_bytes,
)
from headpond.broker.handlers.fetch.wire import FIRST_WITH_TOPIC_ID, Endpoint
from headpond.broker.net.connection import Connection
from headpond.broker.requests.turns import PARTITIONS_PER_SLICE, check_count
from headpond.coordination.slices import Work
from headpond.model import ErrorCode
from headpond.ports import Clock
from headpond.protocol.apis import request_decoder
from headpond.protocol.header import decode_request_header
from headpond.protocol.schema.fetch import FetchRequest

READ_COMMITTED = 1
CONSUMER = -1
LONG_WAIT_MS = 60_000
"""A longer wait is cut to ``connections.max.idle.ms``: Kafka closes a connection that is silent for so long."""

WAIT_MS_MAX = 0x7FFFFFFF
"""The longest that can be asked for."""


class Fetch:
    """One request on its way: what is wanted, within which limits, and how to answer."""

    __slots__ = (
        "broker_id",
        "bytes_max",
        "connection",
        "correlation_id",
        "deadline_s",
        "is_wide",
        "max_wait_ms",
        "min_bytes",
        "rack",
        "read_committed",
        "replica_id",
        "session",
        "session_is_new",
        "standing",
        "version",
        "view",
        "wanted",
    )

    broker_id: int
    rack: str | None
    version: int
    correlation_id: int
    connection: Connection
    replica_id: int
    read_committed: bool
    min_bytes: int
    max_wait_ms: int
    bytes_max: int
    wanted: list[FetchPartition]
    """To be read now."""
    session: FetchSession | None
    session_is_new: bool
    standing: FetchSession | None
    """The session that knows what is to be read now. None: all partitions are."""
    view: View | None
    is_wide: bool
    """It reads more partitions than the loop looks at in one slice, whatever has changed."""
    deadline_s: float | None
    """It waits, or has waited, until then at most."""

    @property
    def partition_count(self) -> int:
        """Of all that it would be answered with."""
        return len(self.wanted) if self.standing is None else len(self.standing.partitions)

    @property
    def bytes_awaited(self) -> int:
        """A fetch that does not want to wait, and does, waits for a flush: whatever that brings is enough."""
        return self.min_bytes if self.max_wait_ms > 0 else 1

    def endpoint(self) -> Endpoint:
        """This broker, as the connection's listener calls it: the leader hint of an answer."""
        listener = self.connection.listener
        return Endpoint(self.broker_id, listener.advertised_host, listener.advertised_port, self.rack)


class FetchOpener:
    def __init__(
        self,
        *,
        broker_id: int,
        rack: str | None,
        sessions: FetchSessions,
        clock: Clock,
        bytes_max: Callable[[], int],
        wait_ms_max: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._rack = rack
        self._sessions = sessions
        self._clock = clock
        self._bytes_max = bytes_max
        self._wait_ms_max = wait_ms_max

    def open(
        self, connection: Connection, request: FetchRequest, version: int, correlation_id: int
    ) -> Fetch | ErrorCode | TooWide:
        """Settle session, partitions and limits; a code refuses the whole request."""
        fetch = self._limited(connection, request, version, correlation_id)
        by_topic_id = version >= FIRST_WITH_TOPIC_ID
        asked = asked_partitions(request, by_topic_id=by_topic_id)
        if len(asked) > PARTITIONS_PER_SLICE:
            return TooWide()
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._full(fetch, request, asked, remembered_bytes(asked))
        session = self._find(request, by_topic_id=by_topic_id)
        if isinstance(session, ErrorCode):
            return session
        self._sessions.add(session, asked.values())
        if request.forgotten_topics_data:
            self._sessions.forget(session, forgotten_partitions(request, by_topic_id=by_topic_id))
        return self._incremental(fetch, session)

    def open_in_slices(
        self, connection: Connection, wide: WideRequest, version: int, correlation_id: int
    ) -> Work[Fetch | ErrorCode]:
        """The same for a request that names many partitions."""
        request = wide.request
        fetch = self._limited(connection, request, version, correlation_id)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._full(fetch, request, wide.asked, wide.asked_bytes)
        session = self._find(request, by_topic_id=version >= FIRST_WITH_TOPIC_ID)
        if isinstance(session, ErrorCode):
            return session
        asked, forgotten = iter(wide.asked.values()), iter(wide.forgotten)
        while some := list(islice(asked, PARTITIONS_PER_SLICE)):
            self._sessions.add(session, some)
            yield None
            if not self._sessions.has(session):
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        while keys := list(islice(forgotten, PARTITIONS_PER_SLICE)):
            self._sessions.forget(session, keys)
            yield None
            if not self._sessions.has(session):
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return self._incremental(fetch, session)

    def list_wanted(self, fetch: Fetch) -> bool:
        """What a wide request reads. False: its session was evicted while it waited for its turn."""
        if fetch.session is not None and not fetch.session_is_new:
            if not self._sessions.has(fetch.session):
                return False
            if fetch.standing is None:
                fetch.wanted = list(fetch.session.partitions.values())
        return True

    def _limited(self, connection: Connection, request: FetchRequest, version: int, correlation_id: int) -> Fetch:
        fetch = Fetch()
        fetch.broker_id = self._broker_id
        fetch.rack = self._rack
        fetch.version = version
        fetch.correlation_id = correlation_id
        fetch.connection = connection
        fetch.replica_id = request.replica_state.replica_id if version >= 15 else request.replica_id
        fetch.read_committed = request.isolation_level == READ_COMMITTED
        fetch.bytes_max = min(request.max_bytes, self._bytes_max())
        fetch.min_bytes = min(request.min_bytes, fetch.bytes_max)
        wait_ms = request.max_wait_ms
        fetch.max_wait_ms = wait_ms if wait_ms <= LONG_WAIT_MS else min(wait_ms, self._wait_ms_max())
        fetch.session = fetch.standing = fetch.view = fetch.deadline_s = None
        fetch.session_is_new = fetch.is_wide = False
        return fetch

    def _full(self, fetch: Fetch, request: FetchRequest, asked: dict[Key, FetchPartition], asked_bytes: int) -> Fetch:
        """A request that lists all its partitions: without a session, or the first one of it."""
        if request.session_id != NO_SESSION:
            self._sessions.drop(request.session_id)
        if request.session_epoch == INITIAL_EPOCH and fetch.version >= 7:
            by_topic_id = fetch.version >= FIRST_WITH_TOPIC_ID
            now_s = self._clock.monotonic()
            fetch.session = self._sessions.open(asked, asked_bytes, by_topic_id=by_topic_id, now_s=now_s)
            fetch.session_is_new = True
        fetch.wanted = list(asked.values())
        fetch.is_wide = len(asked) > PARTITIONS_PER_SLICE
        return fetch

    def _find(self, request: FetchRequest, *, by_topic_id: bool) -> FetchSession | ErrorCode:
        now_s = self._clock.monotonic()
        session_id, epoch = request.session_id, request.session_epoch
        session = self._sessions.find(session_id, epoch, by_topic_id=by_topic_id, now_s=now_s)
        if isinstance(session, FetchSession):
            session.bump_epoch()
        return session

    def _incremental(self, fetch: Fetch, session: FetchSession) -> Fetch | ErrorCode:
        """A request of a session, which has been brought up to date."""
        sessions = self._sessions
        if sessions.is_overfull and not sessions.fits(session, now_s=self._clock.monotonic()):
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND  # what an evicted session gets: the client lists all anew
        fetch.wanted = []
        if not session.partitions:
            sessions.drop(session.id)
            return fetch
        fetch.session = session
        if fetch.replica_id == CONSUMER:
            fetch.standing = session  # it has told what is below the high watermark: who may see more reads all
        elif len(session.partitions) > PARTITIONS_PER_SLICE:
            fetch.is_wide = True  # it lists them at its turn
        else:
            fetch.wanted = list(session.partitions.values())
        return fetch


class TooWide:
    """A request that is not to be opened in one go. Nothing has been done."""


class WideRequest(NamedTuple):
    """A request that names many partitions, decoded by a worker: ``request`` itself has none of them any more."""

    request: FetchRequest
    asked: dict[Key, FetchPartition]
    asked_bytes: int
    forgotten: list[Key]


def decode_wide(frame: bytes, version: int) -> WideRequest:
    """For a worker. Raises ``MalformedMessage``."""
    _, position = decode_request_header(frame, 0)
    request: FetchRequest
    request, _ = request_decoder(1, version)(frame, position)
    by_topic_id = version >= FIRST_WITH_TOPIC_ID
    check_count(len(request.topics))
    check_count(len(request.forgotten_topics_data))
    for topic in request.topics:
        check_count(len(topic.partitions))
    for forgotten_topic in request.forgotten_topics_data:
        check_count(len(forgotten_topic.partitions))
    asked = asked_partitions(request, by_topic_id=by_topic_id)
    forgotten = list(forgotten_partitions(request, by_topic_id=by_topic_id))
    request.topics, request.forgotten_topics_data = [], []
    return WideRequest(request, asked, remembered_bytes(asked), forgotten)


def asked_partitions(request: FetchRequest, *, by_topic_id: bool) -> dict[Key, FetchPartition]:
    asked: dict[Key, FetchPartition] = {}
    for topic in request.topics:
        name: str | bytes = topic.topic_id if by_topic_id else topic.topic
        for p in topic.partitions:
            key = (name, p.partition)
            asked[key] = FetchPartition(
                key, p.fetch_offset, p.partition_max_bytes, p.current_leader_epoch, p.last_fetched_epoch
            )
    for place, partition in enumerate(asked.values()):
        partition.place = place
    return asked


def forgotten_partitions(request: FetchRequest, *, by_topic_id: bool) -> Iterator[Key]:
    for forgotten in request.forgotten_topics_data:
        name: str | bytes = forgotten.topic_id if by_topic_id else forgotten.topic
        for index in forgotten.partitions:
            yield name, index
