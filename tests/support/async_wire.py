"""``Wire`` for many at once: one connection of an event loop, one request at a time."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder, encoder
from support.wire import API_KEYS, request_header

CALL_S = 60.0
"""Longer than any request may be parked: reaching it is a failure."""


class AsyncWire:
    """``call`` raises ``ConnectionError`` when the broker is gone, before or after it did what it was asked."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._address = host, int(port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._correlation_id = 0

    async def call(self, request: Any, version: int) -> Any:
        key = API_KEYS[type(request).__name__.removesuffix("Request")]
        self._correlation_id += 1
        is_flexible = APIS[key].is_flexible(version)
        header = request_header(key, version, self._correlation_id, "churn", flexible=is_flexible)
        body = header + encoder(type(request), version)(request)
        try:
            async with asyncio.timeout(CALL_S):
                frame = await self._exchange(struct.pack(">i", len(body)) + body)
        except TimeoutError:
            raise AssertionError(f"{type(request).__name__} was not answered within {CALL_S} s") from None
        except (OSError, asyncio.IncompleteReadError) as lost:
            self.close()
            raise ConnectionError(str(lost)) from lost
        assert struct.unpack_from(">i", frame)[0] == self._correlation_id
        message, end = decoder(APIS[key].response, version)(frame, 5 if is_flexible else 4)
        assert end == len(frame)
        return message

    async def _exchange(self, frame: bytes) -> bytes:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(frame)
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(size)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
