"""A gate before a broker that asks who one is: TLS, SASL, or both, in this process. What lies behind sees no security.

    gate = Gate(certificate=..., users={"alice": "..."})
    with secured_broker(gate): ...                           # clients come to gate.bootstrap_servers

Written from the RFCs and the protocol's description, not with the client's code: the two check each other.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import os
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from headpond.testing import Broker
from support.certificates import Certificate

HANDSHAKE, AUTHENTICATE, API_VERSIONS = 17, 36, 18
UNSUPPORTED_MECHANISM, REFUSED = 33, 58
ITERATIONS = 4_096


class Gate:
    def __init__(
        self,
        *,
        certificate: Certificate | None = None,
        clients_of: Path | None = None,
        users: Mapping[str, str] | None = None,
        mechanisms: Sequence[str] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        lifetime_ms: int = 0,
    ) -> None:
        self.upstream_port = 0
        self.users = users
        self.mechanisms = mechanisms
        self.lifetime_ms = lifetime_ms
        self.is_lying = False
        self.logins = 0
        self.connections = 0
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate.path, certificate.key)
            if clients_of is not None:
                self._context.verify_mode = ssl.CERT_REQUIRED
                self._context.load_verify_locations(clients_of)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # who comes without TLS is no news
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def bootstrap_servers(self) -> str:
        return f"localhost:{self.port}"

    def lie(self) -> None:
        """From now on it lets everybody in by SCRAM, and can't prove that it knows the password."""
        self.is_lying = True

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._listener, ssl=self._context))
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            answers, broker = await asyncio.open_connection("127.0.0.1", self.upstream_port)
            pump = asyncio.ensure_future(_pump(answers, writer))
            try:
                await _Visitor(self, reader, writer, broker).serve()
            finally:
                pump.cancel()
                broker.close()
        writer.close()

    def challenger(self, mechanism: str) -> _Plain | _Scram:
        assert self.users is not None
        if mechanism == "PLAIN":
            return _Plain(self.users)
        return _Scram(self.users, "sha" + mechanism[-3:], self.is_lying)


class _Visitor:
    """One connection: frames go through once it is known whose they are."""

    def __init__(
        self, gate: Gate, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, broker: asyncio.StreamWriter
    ) -> None:
        self._gate = gate
        self._reader = reader
        self._writer = writer
        self._broker = broker
        self._is_known = gate.users is None
        self._challenger: _Plain | _Scram | None = None

    async def serve(self) -> None:
        while (frame := await self._read_frame()) is not None:
            key, version, correlation_id = struct.unpack_from(">hhi", frame)
            if key == HANDSHAKE and self._gate.users is not None:
                self._handshake(frame, correlation_id)
            elif self._challenger is not None:
                if key != AUTHENTICATE:
                    return  # nothing else may come in between
                assert version == 2
                self._authenticate(frame, correlation_id)
            elif self._is_known or key == API_VERSIONS:
                self._broker.write(struct.pack(">i", len(frame)) + frame)
                await self._broker.drain()
            else:
                return

    async def _read_frame(self) -> bytes | None:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        if not 0 < size < 100_000_000:
            return None  # no Kafka: TLS, for example
        return await self._reader.readexactly(size)

    def _handshake(self, frame: bytes, correlation_id: int) -> None:
        mechanism = frame[_after_client_id(frame) + 2 :].decode()
        is_known = mechanism in self._gate.mechanisms
        code = 0 if is_known else UNSUPPORTED_MECHANISM
        answer = struct.pack(">ihi", correlation_id, code, len(self._gate.mechanisms))
        answer += b"".join(struct.pack(">h", len(one)) + one.encode() for one in self._gate.mechanisms)
        if is_known:
            self._challenger = self._gate.challenger(mechanism)
        self._send(answer)

    def _authenticate(self, frame: bytes, correlation_id: int) -> None:
        start = _after_client_id(frame) + 1  # no tagged fields
        size, start = _varint(frame, start)
        assert self._challenger is not None
        answer = self._challenger.hear(frame[start : start + size - 1])
        is_over = answer is None or self._challenger.is_done
        if is_over:
            self._challenger = None
            self._is_known = answer is not None
            self._gate.logins += self._is_known
        text = b"" if answer is not None else b"no such user, or another password"
        data = answer or b""
        self._send(
            struct.pack(">ibh", correlation_id, 0, 0 if answer is not None else REFUSED)
            + _written(len(text) + 1)
            + text
            + _written(len(data) + 1)
            + data
            + struct.pack(">qb", self._gate.lifetime_ms if is_over else 0, 0)
        )

    def _send(self, answer: bytes) -> None:
        self._writer.write(struct.pack(">i", len(answer)) + answer)


class _Plain:
    is_done = True

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def hear(self, message: bytes) -> bytes | None:
        """None: refused."""
        _, name, password = message.decode().split("\0")
        return b"" if self._users.get(name) == password else None


class _Scram:
    def __init__(self, users: Mapping[str, str], kind: str, lies: bool) -> None:
        self._users = users
        self._kind = kind
        self._lies = lies
        self._salt = os.urandom(16)
        self._said: list[str] = []
        self.is_done = False

    def hear(self, message: bytes) -> bytes | None:
        if not self._said:
            header, bare = message[:3], message[3:].decode()
            assert header == b"n,,"
            name, nonce = bare[2:].split(",r=")
            self._password = self._users.get(name.replace("=2C", ",").replace("=3D", "="))
            more = base64.b64encode(os.urandom(9)).decode()
            challenge = f"r={nonce}{more},s={base64.b64encode(self._salt).decode()},i={ITERATIONS}"
            self._said = [bare, challenge]
            return challenge.encode()
        self.is_done = True
        without_proof, _, proof = message.decode().rpartition(",p=")
        assert without_proof == "c=biws," + self._said[1].split(",")[0]
        if self._lies:
            return b"v=" + base64.b64encode(bytes(32))
        if self._password is None:
            return None
        everything = ",".join([*self._said, without_proof]).encode()
        salted = hashlib.pbkdf2_hmac(self._kind, self._password.encode(), self._salt, ITERATIONS)
        stored = hashlib.new(self._kind, self._sign(salted, b"Client Key")).digest()
        mask = self._sign(stored, everything)
        key = bytes(one ^ other for one, other in zip(base64.b64decode(proof), mask, strict=True))
        if hashlib.new(self._kind, key).digest() != stored:
            return None
        return b"v=" + base64.b64encode(self._sign(self._sign(salted, b"Server Key"), everything))

    def _sign(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self._kind).digest()


@contextlib.contextmanager
def secured_broker(gate: Gate) -> Iterator[Broker]:
    """A broker that tells its clients to come through the gate."""
    with Broker(arguments=["--advertise", gate.bootstrap_servers]) as broker:
        gate.upstream_port = broker.port
        yield broker
    gate.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
        target.close()


def _after_client_id(frame: bytes) -> int:
    (size,) = struct.unpack_from(">h", frame, 8)
    return 10 + max(0, size)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def _written(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
