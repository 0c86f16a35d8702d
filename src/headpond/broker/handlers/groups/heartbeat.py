"""Heartbeat: v0-v4.

Behaviour   Keeps a member's session alive and tells it when to join again: REBALANCE_IN_PROGRESS. While the group is
            being loaded everything is fine: sessions begin anew when it is.
            Thousands of members send it every few seconds, and each sends the same bytes again and again: what they
            mean is kept with the connection.
Versions    v1 throttle time · v3 group.instance.id (KIP-345) · v4 flexible
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from headpond.broker.net.connection import Connection
from headpond.broker.net.timing import serve_timed
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.broker.services import Broker
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.apis import HEARTBEAT, request_decoder
from headpond.protocol.header import decode_request_header
from headpond.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse
from headpond.telemetry.requests import RequestMeter

_AFTER_CORRELATION_ID = 8


class LastHeartbeat(NamedTuple):
    """A connection's last one: from behind the correlation id, which is all that the next one changes."""

    raw: bytes
    context: Context
    request: HeartbeatRequest


class HeartbeatHandler:
    def __init__(self, broker: Broker, meter: RequestMeter) -> None:
        self._broker = broker
        self._meter = meter

    def receive(
        self,
        connection: Connection,
        buffer: bytearray,
        view: memoryview,
        start: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> bytes | None:
        meter = self._meter
        meter.left -= 1
        if not meter.left:
            frame = (buffer, view, start, end, version, correlation_id)
            return serve_timed(self.receive, meter, self._broker.clock, connection, *frame)
        last = connection.last_heartbeat
        if last is None or last.context.version != version or last.raw != view[start + _AFTER_CORRELATION_ID : end]:
            last = connection.last_heartbeat = self._decode(connection, bytes(view[start:end]), version)
        code = answer(last.context, last.request).error_code
        if code:
            meter.failed(code)
        return _FRAMES[version](correlation_id, code)

    def _decode(self, connection: Connection, frame: bytes, version: int) -> LastHeartbeat:
        header, position = decode_request_header(frame)
        request, _ = request_decoder(HEARTBEAT.key, version)(frame, position)
        context = Context(
            self._broker, connection.listener, version, header.client_id, connection.principal, connection.peer_host
        )
        return LastHeartbeat(frame[_AFTER_CORRELATION_ID:], context, request)


async def handle(ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    return answer(ctx, request)


def answer(ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return ctx.broker.groups.read(request.group_id, lambda machine: machine.heartbeat(request))
    except BrokerError as failed:
        is_loading = failed.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else failed.code)


def _framing(version: int) -> Callable[[int, int], bytes]:
    """Packs a whole answer: size, header, throttle time, error."""
    layout = Struct(">iih" if version == 0 else ">ii4xh" if version < 4 else ">ii5xhx")
    size, pack = layout.size - 4, layout.pack
    return lambda correlation_id, code: pack(size, correlation_id, code)


_FRAMES = [_framing(version) for version in HEARTBEAT.versions]
