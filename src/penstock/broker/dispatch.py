"""From a frame to its handler, for every API without a hot path of its own.

A request that is not understood closes the connection without an answer, as Kafka does: the one exception is an
ApiVersions request of an unknown version, which is answered so that the client can step down. A ``BrokerError`` that a
handler lets through is the answer: its code, in the places that the API has for one.
"""

from __future__ import annotations

import logging
from typing import Any

from penstock.broker.connection import Connection
from penstock.broker.context import Context
from penstock.broker.error_responses import error_response
from penstock.broker.response_errors import error_codes
from penstock.broker.routes import HANDLERS, Handle, Route, handler_module
from penstock.broker.services import Broker
from penstock.broker.slots import Slot
from penstock.model import BrokerError
from penstock.ports import Tasks
from penstock.protocol.apis import API_VERSIONS_KEY, APIS
from penstock.protocol.errors import MalformedMessage
from penstock.protocol.header import decode_request_header_end
from penstock.telemetry.requests import RequestMeters

log = logging.getLogger("penstock.dispatch")

DECODED_REQUEST_BYTES_MAX = 8_388_608
"""A larger request is refused unless it is a Produce: decoded into objects it takes up to 54 times its size, and what
clients really send (a fetch of 100,000 partitions, a creation of thousands of topics) is far below."""
_CLIENT_ID = 8
"""Where a header goes on after the key, the version and the correlation id, which are read already."""


class Dispatch:
    def __init__(self, broker: Broker, tasks: Tasks, requests: RequestMeters) -> None:
        self._broker = broker
        self._tasks = tasks
        self._requests = requests
        self._routes: dict[int, Route] = {}

    def serve(
        self, connection: Connection, buffer: bytearray, start: int, end: int, key_version: int, correlation_id: int
    ) -> None:
        if end - start > DECODED_REQUEST_BYTES_MAX:
            raise MalformedMessage(f"a request of {end - start} bytes is too large for its kind")
        frame = bytes(memoryview(buffer)[start:end])
        route = self._routes.get(key_version)
        if route is None:
            route = self._first(connection, frame, key_version, correlation_id)
            if route is None:
                return
        client_id, position = decode_request_header_end(frame, _CLIENT_ID, is_flexible=route.is_flexible)
        request, _ = route.decode(frame, position)
        context = Context(
            self._broker, connection.listener, route.version, client_id, connection.principal, connection.peer_host
        )
        if route.handle_now is not None:
            answer = _Answer(self, connection, route, correlation_id)
            if _handles_now(route, context, request, answer):
                if not answer.is_given:
                    answer.slot = connection.park()
                return
        slot = connection.park()
        connection.hold()
        self._tasks.spawn(route.name, self._run(connection, slot, route, context, correlation_id, request))

    def _first(self, connection: Connection, frame: bytes, key_version: int, correlation_id: int) -> Route | None:
        """The route of a version that nobody has asked for before. None: it is answered."""
        key, version = _signed(key_version >> 16), _signed(key_version)
        info = APIS.get(key) if key in HANDLERS else None
        if info is None:
            raise MalformedMessage(f"API key {key} is not served")
        meter = self._requests.of(info.name)
        if version in info.versions:
            route = self._routes[key_version] = Route(key, version, meter)
            return route
        if key != API_VERSIONS_KEY:
            raise MalformedMessage(f"{info.name} version {version} is not served")
        decode_request_header_end(frame, _CLIENT_ID, is_flexible=info.is_flexible(version))  # or it is malformed
        route = Route(key, 0, meter)
        response = handler_module(key).unsupported_version_response()
        connection.respond(route.frame(correlation_id, response))
        note(route, response, 0.0)
        return None

    async def _run(
        self, connection: Connection, slot: Slot, route: Route, context: Context, correlation_id: int, request: Any
    ) -> None:
        started_s = self.now_s()
        try:
            response = await handled(route.handle, route.key, context, request)
            slot.complete((route.frame(correlation_id, response),))
            note(route, response, self.now_s() - started_s)
        except MalformedMessage as malformed:  # its bytes can be read and still mean nothing
            log.info("closed a connection from %s: %s", connection.peer_host, malformed)
            connection.close()
        except Exception:
            met_a_bug(connection, route)
        finally:
            connection.unhold()

    def now_s(self) -> float:
        return self._broker.clock.monotonic()


class _Answer:
    """Takes the answer of a request that is served without a task, while it is being served or later."""

    __slots__ = ("_connection", "_correlation_id", "_dispatch", "_route", "_started_s", "is_given", "slot")

    def __init__(self, dispatch: Dispatch, connection: Connection, route: Route, correlation_id: int) -> None:
        self._dispatch = dispatch
        self._connection = connection
        self._route = route
        self._correlation_id = correlation_id
        self._started_s = dispatch.now_s()
        self.is_given = False
        self.slot: Slot | None = None  # once it is later

    def __call__(self, response: Any) -> None:
        """Called from a group commit that serves many: nothing may come out."""
        self.is_given = True
        route = self._route
        try:
            frame = route.frame(self._correlation_id, response)
            if self.slot is None:
                self._connection.respond(frame)
            else:
                self.slot.complete((frame,))
            note(route, response, self._dispatch.now_s() - self._started_s)
        except Exception:
            met_a_bug(self._connection, route)


async def handled(handle: Handle, key: int, context: Context, request: Any) -> Any:
    """The answer of the handler, or the one that says what it raised."""
    try:
        return await handle(context, request)
    except BrokerError as failed:
        return error_response(key, context.version, request, failed)


def _handles_now(route: Route, context: Context, request: Any, answer: _Answer) -> bool:
    assert route.handle_now is not None
    try:
        return route.handle_now(context, request, answer)
    except BrokerError as failed:
        if answer.is_given:
            raise
        answer(error_response(route.key, route.version, request, failed))
        return True


def note(route: Route, response: Any, duration_s: float) -> None:
    meter = route.meter
    meter.count()
    meter.duration.observe(duration_s)
    for code in error_codes(response):
        meter.failed(code)


def met_a_bug(connection: Connection, route: Route) -> None:
    """A handler turns what it knows into codes of its own; whatever else it raises is a bug, and there is no
    general error response in the protocol."""
    log.exception("%s from %s met a bug; its connection is closed", route.name, connection.peer_host)
    connection.close()


def _signed(number: int) -> int:
    """The lower 16 bits as the protocol means them."""
    return (number & 0xFFFF ^ 0x8000) - 0x8000
