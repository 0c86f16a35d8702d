"""A raw Kafka client: frames over a socket, any bytes, any API at any version. No retries, no caching, no manners.

Requests are message objects of ``headpond.protocol``; what the codec says is checked elsewhere against independent
implementations, and the same tests run against Apache Kafka (``HEADPOND_TEST_BOOTSTRAP``), so a codec that agrees only
with itself would not get past here.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder, encoder

TIMEOUT_S = 30.0
API_KEYS = {info.name: key for key, info in APIS.items()}
API_VERSIONS_KEY = 18


class ConnectionClosed(Exception):
    """The broker ended the connection instead of answering."""


def request_header(api_key: int, version: int, correlation_id: int, client_id: str | None, *, flexible: bool) -> bytes:
    # The client id is never compact, not even in the flexible header; only the tagged fields behind it are new.
    name = b"\xff\xff" if client_id is None else struct.pack(">h", len(client_id.encode())) + client_id.encode()
    return struct.pack(">hhi", api_key, version, correlation_id) + name + (b"\0" if flexible else b"")


class Wire:
    """One connection. ``call`` is a round trip; ``send``/``receive`` are its halves, for pipelining."""

    def __init__(self, bootstrap: str, *, client_id: str | None = "wire", timeout_s: float = TIMEOUT_S) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self._correlation_id = 0
        self._expected: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def frame(self, request: Any, version: int) -> tuple[int, bytes]:
        """The correlation id and the whole frame of a request, not sent."""
        key = API_KEYS[type(request).__name__.removesuffix("Request")]
        self._correlation_id += 1
        correlation_id = self._correlation_id
        header = request_header(key, version, correlation_id, self.client_id, flexible=APIS[key].is_flexible(version))
        body = header + encoder(type(request), version)(request)
        self._expected[correlation_id] = (key, version)
        return correlation_id, struct.pack(">i", len(body)) + body

    def send(self, request: Any, version: int) -> int:
        correlation_id, frame = self.frame(request, version)
        self.socket.sendall(frame)
        return correlation_id

    def send_raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next response frame without its length; ``ConnectionClosed`` at the end of the stream."""
        (size,) = struct.unpack(">i", self._read_exactly(4))
        return self._read_exactly(size)

    def receive(self) -> tuple[int, Any]:
        """(correlation id, message) of the next response, decoded to its last byte."""
        frame = self.receive_frame()
        (correlation_id,) = struct.unpack_from(">i", frame)
        key, version = self._expected.pop(correlation_id)
        position = 4
        if APIS[key].is_flexible(version) and key != API_VERSIONS_KEY:
            assert frame[position] == 0, "tagged fields in a response header"
            position += 1
        message, end = decoder(APIS[key].response, version)(frame, position)
        assert end == len(frame), f"{len(frame) - end} bytes left over in a {APIS[key].name} v{version} response"
        return correlation_id, message

    def call(self, request: Any, version: int) -> Any:
        sent = self.send(request, version)
        answered, message = self.receive()
        assert answered == sent, f"asked with correlation id {sent}, answered with {answered}"
        return message

    def assert_closed(self) -> None:
        """The broker closes this connection, and says nothing more on it."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            return
        assert data == b"", f"expected the end of the stream, got {len(data)} bytes: {data[:64]!r}"

    def assert_silent(self, for_s: float = 0.2) -> None:
        """Nothing to read now. Absence can't be waited for: what comes later passes, what is right never fails."""
        before = self.socket.gettimeout()
        self.socket.settimeout(for_s)
        try:
            data = self.socket.recv(1)
        except TimeoutError:
            return
        finally:
            self.socket.settimeout(before)
        raise AssertionError(f"expected silence, got {data!r}")

    def _read_exactly(self, size: int) -> bytes:
        out = bytearray()
        while len(out) < size:
            try:
                chunk = self.socket.recv(min(size - len(out), 1 << 20))
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise ConnectionClosed(f"after {len(out)} of {size} bytes")
            out += chunk
        return bytes(out)
