"""Which file serves an API (its row in ``protocol/apis.py`` says it), and all that serving one version of it takes.

A handler (and its messages) is imported when it is first called, or soon after the start (``later.py``): the start pays
for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from importlib import import_module
from struct import Struct
from typing import Any

from headpond.broker.requests.context import Context
from headpond.protocol.apis import (
    APIS,
    SERVED,
    request_decoder,
    request_decoder_in_slices,
    response_appender_in_slices,
    response_encoder,
)
from headpond.protocol.header import has_tagged_response_header
from headpond.telemetry.requests import RequestMeter

REFUSALS = "unconfigured"
"""Not a folder of handlers, but one file with all those that only refuse."""

Handle = Callable[[Context, Any], Awaitable[Any]]
"""Leaves the lists of a request as they are: a long one is let go in slices, when the request is answered."""
HandleNow = Callable[[Context, Any, Callable[[Any], None]], bool]
"""For frequent requests, beside ``handle``: without a task. True: the last argument is called with the answer, now or
later, once. False: this one can't be served so, and nothing has happened. Only asked for requests that are small."""

_pack_head = Struct(">ii").pack
_pack_tagged_head = Struct(">iiB").pack


def handler_name(key: int) -> str:
    """The module that serves an API."""
    api = SERVED[key]
    room = f"headpond.broker.handlers.{api.served_in}"
    return room if api.served_in == REFUSALS else f"{room}.{api.words}"


def handler_module(key: int) -> Any:
    return import_module(handler_name(key))


def handle_of(key: int) -> Handle:
    name = SERVED[key].words if SERVED[key].served_in == REFUSALS else "handle"
    return getattr(handler_module(key), name)  # type: ignore[no-any-return]


class Route:
    """The way of the requests of one API in one version: looked up once, followed often."""

    __slots__ = (
        "_encode",
        "_is_tagged",
        "decode",
        "handle",
        "handle_now",
        "is_flexible",
        "key",
        "looks_into_records",
        "meter",
        "name",
        "parks",
        "version",
    )

    def __init__(self, key: int, version: int, meter: RequestMeter) -> None:
        self.key = key
        self.version = version
        self.name = APIS[key].name
        self.meter = meter
        self.is_flexible = APIS[key].is_flexible(version)
        self.decode = request_decoder(key, version)
        module = handler_module(key)
        self.handle = handle_of(key)
        self.handle_now: HandleNow | None = getattr(module, "handle_now", None)
        self.parks: bool = getattr(module, "PARKS", False)
        self.looks_into_records: bool = getattr(module, "LOOKS_INTO_RECORDS", False)
        self._encode = response_encoder(key, version)
        self._is_tagged = has_tagged_response_header(key, version)

    def frame(self, correlation_id: int, response: Any) -> bytes:
        """The answer as it leaves."""
        body = self._encode(response)
        return self.head(correlation_id, len(body)) + body

    def head(self, correlation_id: int, body_bytes: int) -> bytes:
        """What stands before the body of an answer."""
        if self._is_tagged:
            return _pack_tagged_head(body_bytes + 5, correlation_id, 0)
        return _pack_head(body_bytes + 4, correlation_id)

    def decode_in_slices(self, frame: bytes, position: int) -> Generator[None, None, tuple[Any, int, int]]:
        return request_decoder_in_slices(self.key, self.version)(frame, position)

    def append_in_slices(self, out: bytearray, response: Any) -> Generator[None, None, None]:
        return response_appender_in_slices(self.key, self.version)(out, response)
