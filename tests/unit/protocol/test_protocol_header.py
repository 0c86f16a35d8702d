"""Request and response headers, both sides."""

from __future__ import annotations

import random

import pytest

from headpond.protocol.apis import APIS, api
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
)
from support.other_side import encode_response_header

METADATA, API_VERSIONS = 3, 18


@pytest.mark.parametrize("client_id", [None, "", "me", "née"])
@pytest.mark.parametrize("version", [8, 9])
def test_a_request_header_reads_back(client_id: str | None, version: int) -> None:
    data = encode_request_header(METADATA, version, 77, client_id)
    assert decode_request_header(b"??" + data + b"body", 2) == (
        RequestHeader(METADATA, version, 77, client_id),
        2 + len(data),
    )


def test_only_flexible_versions_have_tagged_fields_and_the_client_id_is_never_compact() -> None:
    assert encode_request_header(METADATA, 8, 1, "ab") == b"\0\x03\0\x08\0\0\0\x01\0\x02ab"
    assert encode_request_header(METADATA, 9, 1, "ab") == b"\0\x03\0\x09\0\0\0\x01\0\x02ab\0"


def test_unknown_tagged_fields_in_a_request_header_are_skipped() -> None:
    data = encode_request_header(METADATA, 9, 1, "ab")[:-1] + b"\x01\x05\x03xyz"
    assert decode_request_header(data + b"body")[1] == len(data)


def test_api_versions_answers_with_a_plain_header_in_every_version() -> None:
    for version in APIS[API_VERSIONS].versions:
        assert encode_response_header(API_VERSIONS, version, 5) == b"\0\0\0\x05"
    assert encode_response_header(METADATA, 8, 5) == b"\0\0\0\x05"
    assert encode_response_header(METADATA, 9, 5) == b"\0\0\0\x05\0"
    assert decode_response_header(b"\0\0\0\x05\x01\x07\x01z!", METADATA, 9) == (5, 8)


def test_a_header_of_an_unknown_api_or_version_still_says_who_asks_what() -> None:
    assert decode_request_header(b"\x03\xe7\0\0\0\0\0\x01\xff\xff")[0] == RequestHeader(999, 0, 1, None)
    assert decode_request_header(b"\0\x12\0\x63\0\0\0\x01\xff\xff\0")[0] == RequestHeader(18, 99, 1, None)
    assert api(999) is None


def test_bad_headers_are_refused() -> None:
    good = encode_request_header(METADATA, 9, 1, "abc")
    for end in range(len(good)):
        with pytest.raises(MalformedMessage):
            decode_request_header(good[:end])
    for end in range(5):
        with pytest.raises(MalformedMessage):
            decode_response_header(b"\0\0\0\x01\0"[:end], METADATA, 9)
    dice = random.Random(1)
    for _ in range(2_000):
        data = dice.randbytes(dice.randrange(24))
        try:
            assert decode_request_header(data)[1] <= len(data)
        except MalformedMessage:
            pass
