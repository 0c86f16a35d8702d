"""The metrics port's HTTP, as bytes: strict about what comes in, however it is cut up."""

from __future__ import annotations

import random

import pytest

from headpond.telemetry.http import (
    HEADERS_MAX,
    REQUEST_BYTES_MAX,
    BadRequest,
    Request,
    RequestReader,
    chunk,
    parse,
    plain_response,
)

PLAIN = b"GET /metrics HTTP/1.1\r\nHost: a:1\r\nAccept: text/plain\r\n\r\n"


def read(data: bytes) -> Request | None:
    return RequestReader().receive(data)


def test_a_request_is_read_from_one_piece_or_from_single_bytes() -> None:
    wanted = Request("GET", "/metrics", "text/plain", True)
    assert read(PLAIN) == wanted
    reader = RequestReader()
    answers = [reader.receive(PLAIN[at : at + 1]) for at in range(len(PLAIN))]
    assert answers[:-1] == [None] * (len(PLAIN) - 1)
    assert answers[-1] == wanted


def test_what_follows_the_request_is_ignored() -> None:
    assert read(PLAIN + PLAIN) == read(PLAIN)


@pytest.mark.parametrize(
    ("data", "request_"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", Request("GET", "/", "", False)),
        (b"HEAD /metrics?name[]=a%20b HTTP/1.1\r\nhost:x\r\n\r\n", Request("HEAD", "/metrics", "", True)),
        (b"GET http://proxy.example/readyz HTTP/1.1\r\nHost: x\r\n\r\n", Request("GET", "/readyz", "", True)),
        (b"GET /a HTTP/1.1\r\nHost: x\r\nAccept: a\r\naccept: b\r\n\r\n", Request("GET", "/a", "a, b", True)),
        (b"GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", Request("GET", "/a", "", True)),
        (b"BREW /a HTTP/1.1\r\nHost: x\r\nX-Name: \xe9\r\n\r\n", Request("BREW", "/a", "", True)),
    ],
)
def test_good_requests(data: bytes, request_: Request) -> None:
    assert read(data) == request_


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET  /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1 \r\nHost: x\r\n\r\n", 400),
        (b"G\xc3\xa9T /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /met\x00rics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\nHost: x\n\n\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 5\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET /metrics HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * (HEADERS_MAX + 1) + b"\r\n", 431),
        (b"GET /" + b"a" * REQUEST_BYTES_MAX, 431),
        (b"x" * (REQUEST_BYTES_MAX * 3), 431),
    ],
)
def test_what_is_doubtful_is_refused(data: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refused:
        read(data)
    assert refused.value.status == status
    assert plain_response(refused.value.status, refused.value.why).startswith(b"HTTP/1.1 ")


@pytest.mark.parametrize("padding", [b" ", b"\t", b" \t", b"a ", b"-", b":", b"\xff"])
def test_a_header_is_read_in_time_that_grows_with_its_length(padding: bytes) -> None:
    long = padding * (3_500 // len(padding))
    for row in (b"X:" + long + b"\x01", b"X:" + long, long + b": x", b"X" + long, b"X:" + long + b"a" + long):
        data = b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + row + b"\r\n\r\n"
        try:  # an expression that goes back over its blanks would be at it for a quarter of an hour
            assert read(data) is not None
        except BadRequest as refused:
            assert refused.status == 400


def test_blanks_around_a_value_do_not_count() -> None:
    request = read(b"GET / HTTP/1.1\r\nHost:x\r\nAccept: \t text/plain ; q=1\t \r\n\r\n")
    assert request is not None and request.accept == "text/plain ; q=1"


def test_garbage_is_refused_at_its_first_line_without_waiting_for_more() -> None:
    reader = RequestReader()
    assert reader.receive(b"\x00\x00\x00\x12\x00\x03") is None
    with pytest.raises(BadRequest):
        reader.receive(b"kafka\n")


def test_random_bytes_are_never_more_than_refused() -> None:
    chance = random.Random(4)
    for _ in range(3_000):
        data = bytearray(PLAIN)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            read(bytes(data))
        except BadRequest as refused:
            assert refused.status in (400, 431, 505)


def test_a_head_answer_has_the_length_and_no_body() -> None:
    head = plain_response(404, "no", with_body=False)
    assert head.endswith(b"\r\n\r\n")
    assert b"Content-Length: 3\r\n" in head and b"Connection: close\r\n" in head
    assert plain_response(404, "no") == head + b"no\n"


def test_chunks() -> None:
    assert chunk(b"hello world, hello") == b"12\r\nhello world, hello\r\n"
    assert chunk(b"") == b"0\r\n\r\n"


def test_a_request_without_headers_may_come_from_http_1_0() -> None:
    assert parse(b"GET /healthz HTTP/1.0") == Request("GET", "/healthz", "", False)
