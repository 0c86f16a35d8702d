"""A tiny blocking Kafka client for what the bench itself asks: create a topic, produce one record, find an end offset.

Non-flexible request versions only; they are spoken by every broker of Kafka's protocol. It exists because the start-up
figures must not contain a client library's own connection dance and back-off.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping

from crc32c import crc32c

PRODUCE, LIST_OFFSETS, CREATE_TOPICS = 0, 2, 19
TOPIC_ALREADY_EXISTS = 36
# A request may sit in a broker that accepted the connection before it was ready to answer.
ANSWER_TIMEOUT_S = 60.0
CONNECT_RETRY_S = 0.002


class RequestFailed(Exception):
    """The broker answered with an error code."""


def text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def one_record_batch(value: bytes, now_ms: int) -> bytes:
    """A RecordBatch v2 with one record without key; the value must be shorter than 8,000 bytes (two-byte varints)."""
    length = _varint(len(value)) + value
    body = b"\x00\x00\x00\x01" + length + b"\x00"
    records = _varint(len(body)) + body
    tail = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + records
    head = struct.pack(">qiibI", 0, 9 + len(tail), -1, 2, crc32c(tail))
    return head + tail


def _varint(value: int) -> bytes:
    coded = value << 1
    out = bytearray()
    while coded > 127:
        out.append(coded & 127 | 128)
        coded >>= 7
    out.append(coded)
    return bytes(out)


class Wire:
    """One connection; requests are answered before the next is sent."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._correlation = 0

    @classmethod
    def connect(cls, port: int, deadline: float) -> Wire:
        """Retries refused connections until time.monotonic() passes the deadline, then raises the last refusal."""
        while True:
            try:
                sock = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_TIMEOUT_S)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return cls(sock)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(CONNECT_RETRY_S)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def ask(self, api: int, version: int, body: bytes) -> bytes:
        self.send(api, version, body)
        return self.receive()

    def send(self, api: int, version: int, body: bytes) -> None:
        self._correlation += 1
        request = struct.pack(">hhi", api, version, self._correlation) + text("bench") + body
        self._sock.sendall(struct.pack(">i", len(request)) + request)

    def receive(self) -> bytes:
        """The answer to what was sent last."""
        (size,) = struct.unpack(">i", self._exactly(4))
        answer = self._exactly(size)
        if struct.unpack_from(">i", answer)[0] != self._correlation:
            raise RequestFailed("answer with a wrong correlation id")
        return answer[4:]

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """A topic that exists already is fine."""
        pairs = b"".join(text(key) + text(value) for key, value in configs.items())
        topic = text(name) + struct.pack(">ihii", partitions, 1, 0, len(configs)) + pairs
        answer = self.ask(CREATE_TOPICS, 4, struct.pack(">i", 1) + topic + struct.pack(">ib", 60_000, 0))
        at = 4 + 4 + 2 + len(name.encode())
        code, message_bytes = struct.unpack_from(">hh", answer, at)
        if code not in (0, TOPIC_ALREADY_EXISTS):
            message = answer[at + 4 : at + 4 + max(message_bytes, 0)].decode(errors="replace")
            raise RequestFailed(f"create topic {name}: error {code} {message}")

    def produce_one(self, topic: str, partition: int, acks: int) -> int:
        """The error code of the answer."""
        batch = one_record_batch(b"bench", int(time.time() * 1000))
        body = text(None) + struct.pack(">hii", acks, 30_000, 1) + text(topic)
        answer = self.ask(PRODUCE, 7, body + struct.pack(">iii", 1, partition, len(batch)) + batch)
        return int(struct.unpack_from(">h", answer, 4 + 2 + len(topic.encode()) + 4 + 4)[0])

    def produce_until_acked(self, topic: str, partition: int, deadline: float, acks: int = -1) -> None:
        """Repeats while the broker says that it is not ready (no leader yet, topic not there yet)."""
        while code := self.produce_one(topic, partition, acks):
            if time.monotonic() > deadline:
                raise RequestFailed(f"produce to {topic}-{partition}: error {code}")
            time.sleep(CONNECT_RETRY_S)

    def end_offset(self, topic: str, partition: int) -> int:
        asked = struct.pack(">ibi", -1, 0, 1) + text(topic) + struct.pack(">iiq", 1, partition, -1)
        answer = self.ask(LIST_OFFSETS, 2, asked)
        at = 4 + 4 + 2 + len(topic.encode()) + 4
        _, code, _, offset = struct.unpack_from(">ihqq", answer, at)
        if code:
            raise RequestFailed(f"end offset of {topic}-{partition}: error {code}")
        return int(offset)

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._sock.recv(size)
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
