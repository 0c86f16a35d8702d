"""From a frame to its handler, for every API without a hot path of its own.

The table says which API is served by which file; a handler (and its messages) is imported when it is first called, so
that the start pays for nothing. A request that is not understood closes the connection without an answer, as Kafka
does: the one exception is an ApiVersions request of an unknown version, which is answered so that the client can step
down.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from penstock.broker.connection import Connection
from penstock.broker.context import Context
from penstock.broker.response_errors import error_codes
from penstock.broker.services import Broker
from penstock.broker.slots import Slot
from penstock.ports import Tasks
from penstock.protocol.apis import API_VERSIONS_KEY, APIS, request_decoder, response_encoder
from penstock.protocol.errors import MalformedMessage
from penstock.protocol.header import RequestHeader, decode_request_header, encode_response_header
from penstock.telemetry.requests import RequestMeters

log = logging.getLogger("penstock.dispatch")

HANDLERS: dict[int, str] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    38: "create_delegation_token",
    39: "renew_delegation_token",
    40: "expire_delegation_token",
    41: "describe_delegation_token",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    50: "describe_user_scram_credentials",
    57: "update_features",
    60: "describe_cluster",
    61: "describe_producers",
    65: "describe_transactions",
    66: "list_transactions",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    74: "list_config_resources",
    75: "describe_topic_partitions",
}

DECODED_REQUEST_BYTES_MAX = 8_388_608
"""A larger request is refused unless it is a Produce: decoded into objects it takes up to 54 times its size, and what
clients really send (a fetch of 100,000 partitions, a creation of thousands of topics) is far below."""

Handle = Callable[[Context, Any], Awaitable[Any]]
HandleNow = Callable[[Context, Any, Callable[[Any], None]], bool]
"""For frequent requests, beside ``handle``: without a task. True: the last argument is called with the answer, now or
later, once. False: this one can't be served so, and nothing has happened."""


def handler_module(key: int) -> Any:
    return import_module(f"penstock.broker.handlers.{HANDLERS[key]}")


def advertised_versions() -> list[tuple[int, int, int]]:
    """(key, lowest, highest) of everything served, as ApiVersions lists it."""
    return [(key, APIS[key].advertised[0], APIS[key].advertised[-1]) for key in sorted(HANDLERS)]


class Dispatch:
    def __init__(self, broker: Broker, tasks: Tasks, requests: RequestMeters) -> None:
        self._broker = broker
        self._tasks = tasks
        self._requests = requests
        self._handles: dict[int, Handle] = {}
        self._nows: dict[int, HandleNow] = {}  # of those that have one, once they were called

    def serve(self, connection: Connection, buffer: bytearray, start: int, end: int) -> None:
        if end - start > DECODED_REQUEST_BYTES_MAX:
            raise MalformedMessage(f"a request of {end - start} bytes is too large for its kind")
        frame = bytes(memoryview(buffer)[start:end])
        header, position = decode_request_header(frame)
        key, version = header.api_key, header.api_version
        info = APIS.get(key) if key in HANDLERS else None
        if info is None:
            raise MalformedMessage(f"API key {key} is not served")
        if version not in info.versions:
            if key != API_VERSIONS_KEY:
                raise MalformedMessage(f"{info.name} version {version} is not served")
            response = handler_module(key).unsupported_version_response()
            connection.respond(*_framed(0, header, response))
            self.note(info.name, response, 0.0)
            return
        request, _ = request_decoder(key, version)(frame, position)
        context = Context(
            self._broker, connection.listener, version, header.client_id, connection.principal, connection.peer_host
        )
        slot = connection.park()
        now = self._nows.get(key)
        if now is not None and now(context, request, _Answer(self, connection, slot, header)):
            return
        connection.hold()
        self._tasks.spawn(info.name, self._run(connection, slot, context, header, request))

    async def _run(
        self, connection: Connection, slot: Slot, context: Context, header: RequestHeader, request: Any
    ) -> None:
        started_s = self._broker.clock.monotonic()
        try:
            response = await self._handle(header.api_key)(context, request)
            slot.complete(_framed(header.api_version, header, response))
            self.note(APIS[header.api_key].name, response, self._broker.clock.monotonic() - started_s)
        except MalformedMessage as malformed:  # its bytes can be read and still mean nothing
            log.info("closed a connection from %s: %s", connection.peer_host, malformed)
            connection.close()
        except Exception:
            self.met_a_bug(connection, header.api_key)
        finally:
            connection.unhold()

    def met_a_bug(self, connection: Connection, key: int) -> None:
        """A handler turns what it knows into codes of its own; whatever else it raises is a bug, and there is no
        general error response in the protocol."""
        log.exception("%s from %s met a bug; its connection is closed", APIS[key].name, connection.peer_host)
        connection.close()

    def now_seconds(self) -> float:
        return self._broker.clock.monotonic()

    def note(self, api: str, response: Any, duration_s: float) -> None:
        meter = self._requests.of(api)
        meter.count()
        meter.duration.observe(duration_s)
        for code in error_codes(response):
            meter.failed(code)

    def _handle(self, key: int) -> Handle:
        handle = self._handles.get(key)
        if handle is None:
            module = handler_module(key)
            handle = self._handles[key] = module.handle
            if hasattr(module, "handle_now"):
                self._nows[key] = module.handle_now
        return handle


class _Answer:
    """Takes the answer of a request that was served without a task."""

    __slots__ = ("_connection", "_dispatch", "_header", "_slot", "_started_s")

    def __init__(self, dispatch: Dispatch, connection: Connection, slot: Slot, header: RequestHeader) -> None:
        self._dispatch = dispatch
        self._connection = connection
        self._slot = slot
        self._header = header
        self._started_s = dispatch.now_seconds()

    def __call__(self, response: Any) -> None:
        """Called from a group commit that serves many: nothing may come out."""
        dispatch, header = self._dispatch, self._header
        try:
            self._slot.complete(_framed(header.api_version, header, response))
            dispatch.note(APIS[header.api_key].name, response, dispatch.now_seconds() - self._started_s)
        except Exception:
            dispatch.met_a_bug(self._connection, header.api_key)


def _framed(version: int, header: RequestHeader, response: Any) -> tuple[bytes]:
    body = response_encoder(header.api_key, version)(response)
    head = encode_response_header(header.api_key, version, header.correlation_id)
    return ((len(head) + len(body)).to_bytes(4, "big") + head + body,)
