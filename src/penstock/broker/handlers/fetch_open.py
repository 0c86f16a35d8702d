"""What a Fetch request wants: its session settled, its partitions listed, its limits worked out."""

from __future__ import annotations

from collections.abc import Callable

from penstock.broker.connection import Connection
from penstock.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchPartition,
    FetchSession,
    FetchSessions,
    Key,
)
from penstock.broker.handlers.fetch_wire import FIRST_WITH_TOPIC_ID, Endpoint
from penstock.model import ErrorCode
from penstock.ports import Clock
from penstock.protocol.schema.fetch import FetchRequest

READ_COMMITTED = 1


class Fetch:
    """One request on its way: what is wanted, within which limits, and how to answer."""

    __slots__ = (
        "broker_id",
        "bytes_max",
        "connection",
        "correlation_id",
        "max_wait_ms",
        "min_bytes",
        "rack",
        "read_committed",
        "replica_id",
        "session",
        "session_is_new",
        "version",
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
    session: FetchSession | None
    session_is_new: bool

    def endpoint(self) -> Endpoint:
        """This broker, as the connection's listener calls it: the hint for whoever asks for a leader."""
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
    ) -> None:
        self._broker_id = broker_id
        self._rack = rack
        self._sessions = sessions
        self._clock = clock
        self._bytes_max = bytes_max

    def open(
        self, connection: Connection, request: FetchRequest, version: int, correlation_id: int
    ) -> Fetch | ErrorCode:
        """Settle session, partitions and limits; a code refuses the whole request."""
        fetch = Fetch()
        fetch.broker_id = self._broker_id
        fetch.rack = self._rack
        fetch.version = version
        fetch.correlation_id = correlation_id
        fetch.connection = connection
        by_topic_id = version >= FIRST_WITH_TOPIC_ID
        asked = asked_partitions(request, by_topic_id=by_topic_id)
        now_s = self._clock.monotonic()
        fetch.session = None
        fetch.session_is_new = False
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.drop(request.session_id)
            if request.session_epoch == INITIAL_EPOCH and version >= 7:
                fetch.session = self._sessions.open(asked, by_topic_id=by_topic_id, now_s=now_s)
                fetch.session_is_new = True
            fetch.wanted = list(asked.values())
        else:
            session = self._sessions.find(
                request.session_id, request.session_epoch, by_topic_id=by_topic_id, now_s=now_s
            )
            if isinstance(session, ErrorCode):
                return session
            _update_session(session, asked, request, by_topic_id=by_topic_id)
            session.bump_epoch()
            if session.partitions:
                fetch.session = session
            else:
                self._sessions.drop(session.id)
            fetch.wanted = list(session.partitions.values())
        fetch.replica_id = request.replica_state.replica_id if version >= 15 else request.replica_id
        fetch.read_committed = request.isolation_level == READ_COMMITTED
        fetch.bytes_max = min(request.max_bytes, self._bytes_max())
        fetch.min_bytes = min(request.min_bytes, fetch.bytes_max)
        fetch.max_wait_ms = request.max_wait_ms
        return fetch


def asked_partitions(request: FetchRequest, *, by_topic_id: bool) -> dict[Key, FetchPartition]:
    asked: dict[Key, FetchPartition] = {}
    for topic in request.topics:
        name: str | bytes = topic.topic_id if by_topic_id else topic.topic
        for p in topic.partitions:
            key = (name, p.partition)
            asked[key] = FetchPartition(
                key, p.fetch_offset, p.partition_max_bytes, p.current_leader_epoch, p.last_fetched_epoch
            )
    return asked


def _update_session(
    session: FetchSession, asked: dict[Key, FetchPartition], request: FetchRequest, *, by_topic_id: bool
) -> None:
    for key, partition in asked.items():
        known = session.partitions.get(key)
        if known is None:
            session.partitions[key] = partition
        else:
            known.update(partition)
    for forgotten in request.forgotten_topics_data:
        name: str | bytes = forgotten.topic_id if by_topic_id else forgotten.topic
        for index in forgotten.partitions:
            session.partitions.pop((name, index), None)
