"""From a frame to its handler, for every API without a hot path of its own.

A request that is not understood closes the connection without an answer, as Kafka does: the one exception is an
ApiVersions request of an unknown version, which is answered so that the client can step down. A ``BrokerError`` that a
handler lets through is the answer: its code, in the places that the API has for one.

Large requests and long answers are decoded and encoded in slices (``pacing.py``). The connection is held meanwhile, so
the order of its requests is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from headpond.broker.net.answering import Answering
from headpond.broker.net.connection import Connection
from headpond.broker.net.slots import Slot
from headpond.broker.requests import long_answers
from headpond.broker.requests.context import Context
from headpond.broker.requests.error_responses import error_response, error_response_in_slices
from headpond.broker.requests.letting_go import let_go
from headpond.broker.requests.pacing import AT_ONCE_BYTES_MAX, AnswerTooLarge, Lane
from headpond.broker.requests.response_errors import error_codes
from headpond.broker.requests.routes import Handle, Route, handler_module
from headpond.broker.services import Broker
from headpond.coordination.slices import Work, while_wanted
from headpond.model import BrokerError
from headpond.ports import CodeFiles, Tasks
from headpond.protocol.apis import API_VERSIONS_KEY, SERVED
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.header import decode_request_header_end
from headpond.telemetry.requests import RequestMeter, RequestMeters

log = logging.getLogger("headpond.dispatch")

T = TypeVar("T")

DECODED_REQUEST_BYTES_MAX = 8_388_608
"""A larger request is refused unless it is a Produce: decoded into objects it takes up to 54 times its size, and what
clients really send (a fetch of 100,000 partitions, a creation of thousands of topics) is far below."""
FEW_ELEMENTS = 256
"""A request with no more is small once it is decoded, however many bytes it had: a member's metadata, say."""
_CLIENT_ID = 8
"""Where a header goes on after the key, the version and the correlation id, which are read already."""


class Dispatch:
    def __init__(
        self, broker: Broker, tasks: Tasks, requests: RequestMeters, code_files: CodeFiles | None = None
    ) -> None:
        self._broker = broker
        self._tasks = tasks
        self._requests = requests
        self._code_files = code_files
        self._routes: dict[int, Route] = {}

    def serve(
        self, connection: Connection, buffer: bytearray, start: int, end: int, key_version: int, correlation_id: int
    ) -> None:
        if end - start > DECODED_REQUEST_BYTES_MAX:
            raise MalformedMessage(f"a request of {end - start} bytes is too large for its kind")
        route = self._routes.get(key_version)
        if route is None:
            route = self._first(connection, bytes(memoryview(buffer)[start:end]), key_version, correlation_id)
            if route is None:
                return
        if end - start > AT_ONCE_BYTES_MAX:
            self._serve_large(connection, route, buffer, start, end, correlation_id)
            return
        frame = bytes(memoryview(buffer)[start:end])
        client_id, position = decode_request_header_end(frame, _CLIENT_ID, is_flexible=route.is_flexible)
        request, _ = route.decode(frame, position)
        context = self._context(connection, route, client_id)
        if route.handle_now is not None:
            answer = _Answer(self, connection, route, correlation_id)
            if _handles_now(route, context, request, answer):
                if not answer.is_given:
                    answer.slot = connection.park()
                return
        slot = connection.park()
        connection.hold()
        answering = self._answer_small(connection, slot, route, context, correlation_id, [request])
        self._tasks.spawn(route.name, self._run(connection, route, answering))

    def _context(self, connection: Connection, route: Route, client_id: str | None) -> Context:
        return Context(
            self._broker,
            connection.listener,
            route.version,
            client_id,
            connection.principal,
            connection.peer_host,
            asker=connection,
        )

    def _serve_large(
        self, connection: Connection, route: Route, buffer: bytearray, start: int, end: int, correlation_id: int
    ) -> None:
        lane = self._broker.pacing.lane_for(end - start, looks_into_records=route.looks_into_records)
        connection.hold()
        if lane.take():
            frame = bytes(memoryview(buffer)[start:end])
            answering = self._answer_large(connection, connection.park(), route, correlation_id, frame, lane)
            self._tasks.spawn(route.name, self._run(connection, route, answering))
        else:  # it stays where it is, not decoded
            connection.serve_again_later()
            lane.when_free(connection.unhold)

    def _first(self, connection: Connection, frame: bytes, key_version: int, correlation_id: int) -> Route | None:
        """The route of a version that is requested for the first time. None: it is answered."""
        key, version = _signed(key_version >> 16), _signed(key_version)
        info = SERVED.get(key)
        if info is None:
            raise MalformedMessage(f"API key {key} is not served")
        meter = self._requests.of(info.name)
        if version in info.versions:
            route = self._routes[key_version] = self._route(key, version, meter)
            return route
        if key != API_VERSIONS_KEY:
            raise MalformedMessage(f"{info.name} version {version} is not served")
        decode_request_header_end(frame, _CLIENT_ID, is_flexible=info.is_flexible(version))  # or it is malformed
        route = self._route(key, 0, meter)
        response = handler_module(key).unsupported_version_response()
        connection.respond(route.frame(correlation_id, response))
        note(route, response, 0.0)
        return None

    def _route(self, key: int, version: int, meter: RequestMeter) -> Route:
        if self._code_files is None:
            return Route(key, version, meter)
        with self._code_files.within_reach():
            return Route(key, version, meter)

    async def _run(self, connection: Connection, route: Route, answering: Coroutine[Any, Any, None]) -> None:
        try:
            await answering
        except MalformedMessage as malformed:  # also one whose bytes can be read and still mean nothing
            connection.server.refuse_request(connection, malformed)
        except AnswerTooLarge as too_large:
            log.warning(
                "closed a connection from %s: the answer to its %s request has %s",
                connection.peer_host, route.name, too_large,
            )  # fmt: skip
            connection.close()
        except Exception:
            met_a_bug(connection, route)
        finally:
            connection.unhold()

    async def _answer_small(
        self,
        connection: Connection,
        slot: Slot,
        route: Route,
        context: Context,
        correlation_id: int,
        request: list[Any],
    ) -> None:
        if await connection.server.room_for_an_answer(slot):  # requests that came together are served in turn
            await self._answer(slot, route, context, correlation_id, request)

    async def _answer_large(
        self, connection: Connection, slot: Slot, route: Route, correlation_id: int, frame: bytes, lane: Lane
    ) -> None:
        has_left = False
        try:
            if not await connection.server.room_for_an_answer(slot):
                return
            client_id, position = decode_request_header_end(frame, _CLIENT_ID, is_flexible=route.is_flexible)
            decoded = await self._in_slices(connection, route.decode_in_slices(frame, position))
            if decoded is None:
                return
            request, _, elements = decoded
            del frame, decoded
            if elements <= FEW_ELEMENTS or route.parks:
                has_left = True
                lane.leave()
            context = self._context(connection, route, client_id)
            last_reference = [request]
            del request
            await self._answer(slot, route, context, correlation_id, last_reference, is_large=elements > FEW_ELEMENTS)
        finally:
            if not has_left:
                lane.leave()

    async def _answer(
        self,
        slot: Slot,
        route: Route,
        context: Context,
        correlation_id: int,
        request: list[Any],
        *,
        is_large: bool = False,
    ) -> None:
        """``request``: it alone, and the last reference to it."""
        started_s = self.now_s()
        try:
            response = await handled(route.handle, route.key, context, request[0])
            if not is_large and not context.is_long:
                slot.complete((route.frame(correlation_id, response),))
                note(route, response, self.now_s() - started_s)
                return
            slices, connection = self._broker.pacing.slices, slot.connection
            await slices.finish(let_go(request))
            parts = await self._in_slices(connection, long_answers.encoded(route, correlation_id, response))
            if parts is not None:
                slot.complete(parts)
            del parts
            route.meter.count()
            route.meter.duration.observe(self.now_s() - started_s)
            for code, times in (await slices.finish(long_answers.counted(response))).items():
                route.meter.failed(code, times)
            last_reference = [response]
            del response
            await slices.finish(let_go(last_reference))
        finally:
            context.leave()

    async def _in_slices(self, connection: Answering, work: Work[T]) -> T | None:
        """None: the client has gone away meanwhile."""
        return await self._broker.pacing.slices.finish(while_wanted(work, lambda: not connection.closed))

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
        return await context.finish(error_response_in_slices(key, context.version, request, failed))


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
