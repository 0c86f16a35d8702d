"""As much HTTP/1.1 as a scraper and a health probe need: one GET or HEAD per connection. Bytes only, no socket.

    reader = RequestReader()
    request = reader.receive(data)        # None: more is needed; raises BadRequest

Strict: a request is a line and headers of ASCII with CRLF, at most ``REQUEST_BYTES_MAX``, without a body. What is
doubtful is refused rather than guessed, and every answer ends its connection.
"""

from __future__ import annotations

import re
from typing import NamedTuple

REQUEST_BYTES_MAX = 8_192
"""The request line and all headers; scrapers send a few hundred bytes."""
HEADERS_MAX = 64

_END = b"\r\n\r\n"
_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) (HTTP/[0-9]\.[0-9])")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\x20-\x7e\t\x80-\xff]*")
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


class BadRequest(Exception):
    """The peer's mistake: to be answered with ``status`` and one sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Request(NamedTuple):
    method: str
    path: str  # without the query
    accept: str
    takes_chunks: bool  # HTTP/1.0 does not


class RequestReader:
    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def receive(self, data: bytes) -> Request | None:
        """The request, once all of it is there. What follows it is ignored: there is no second one."""
        self._data += data[: REQUEST_BYTES_MAX + 1 - len(self._data)]
        end = self._data.find(_END)
        if end >= 0:
            return parse(bytes(self._data[:end]))
        if len(self._data) > REQUEST_BYTES_MAX:
            raise BadRequest(431, f"a request has at most {REQUEST_BYTES_MAX} bytes here")
        if b"\n" in self._data and not _LINE.fullmatch(self._data.partition(b"\n")[0].removesuffix(b"\r")):
            raise BadRequest(400, "malformed HTTP request line")  # no need to wait for the rest
        return None


def parse(head: bytes) -> Request:
    """The request of a line and headers, without the empty line. Raises ``BadRequest``."""
    line, *rows = head.split(b"\r\n")
    found = _LINE.fullmatch(line)
    if found is None:
        raise BadRequest(400, "malformed HTTP request line")
    method, target, version = (part.decode("ascii") for part in found.groups())
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(505, "HTTP/1.1 is spoken here")
    headers = _headers(rows)
    if version == "HTTP/1.1" and "host" not in headers:
        raise BadRequest(400, "HTTP/1.1 needs a Host header")
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        raise BadRequest(400, "a request has no body here")
    return Request(method, _path(target), headers.get("accept", ""), version == "HTTP/1.1")


def response_head(status: int, fields: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS[status]}", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join([*lines, "Cache-Control: no-store", "Connection: close"]) + "\r\n\r\n").encode("ascii")


def plain_response(status: int, text: str, *, with_body: bool = True, more: dict[str, str] | None = None) -> bytes:
    """A whole response of one line."""
    body = f"{text}\n".encode()
    fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **(more or {})}
    return response_head(status, fields) + (body if with_body else b"")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _headers(rows: list[bytes]) -> dict[str, str]:
    if len(rows) > HEADERS_MAX:
        raise BadRequest(431, f"a request has at most {HEADERS_MAX} headers here")
    headers: dict[str, str] = {}
    for row in rows:
        before, colon, after = row.partition(b":")
        if not colon or not _NAME.fullmatch(before) or not _VALUE.fullmatch(after):
            raise BadRequest(400, "a header is not NAME: VALUE")
        name, value = before.decode("ascii").lower(), after.strip(b" \t").decode("latin-1")
        if name in headers and name in ("host", "content-length", "transfer-encoding"):
            raise BadRequest(400, f"the header {name} is there twice")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _path(target: str) -> str:
    if target.startswith("http://"):  # the absolute form, as a proxy sends it
        target = "/" + target[len("http://") :].partition("/")[2]
    if not target.startswith("/"):
        raise BadRequest(400, "the target of a request is a path")
    return target.partition("?")[0]
