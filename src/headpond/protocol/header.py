"""What stands before every request and every response in its frame.

A request header has version 1, or 2 (with tagged fields) where the request's version is flexible; ``client_id`` is a
plain nullable string in both. A response header has version 0, or 1 (with tagged fields) likewise, except that
ApiVersions always answers with version 0: its asker does not know yet what we speak.

Both directions are here, the broker's and the client's. Bad bytes raise ``MalformedMessage``.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from headpond.protocol.apis import API_VERSIONS_KEY, APIS
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.wire import TEXT_ERRORS, skip_tagged_fields

if TYPE_CHECKING:
    from headpond.protocol.types import Buffer

_start = struct.Struct(">hhi")
_unpack_start = _start.unpack_from
_unpack_size = struct.Struct(">h").unpack_from
_pack_fixed = struct.Struct(">hhih").pack
_correlation = struct.Struct(">i")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """The header and where the body starts. An unknown key gets a version 1 header: its body can't be read anyway."""
    try:
        key, version, correlation_id = _unpack_start(buffer, position)
    except struct.error:
        raise MalformedMessage("request header cut short") from None
    api = APIS.get(key)
    is_flexible = api is not None and api.is_flexible(version)
    client_id, position = decode_request_header_end(buffer, position + _start.size, is_flexible=is_flexible)
    return RequestHeader(key, version, correlation_id, client_id), position


def decode_request_header_end(buffer: Buffer, position: int, *, is_flexible: bool) -> tuple[str | None, int]:
    """The client's id, which is what follows the correlation id, and where the body starts."""
    try:
        (size_bytes,) = _unpack_size(buffer, position)
        position += 2
        client_id = None
        if size_bytes >= 0:
            end = position + size_bytes
            client_id = str(buffer[position:end], "utf-8", TEXT_ERRORS)
            position = end
        if is_flexible:
            count = buffer[position]
            position += 1
            if count:
                position = skip_tagged_fields(buffer, count, position)
    except (IndexError, struct.error):
        raise MalformedMessage("request header cut short") from None
    if position > len(buffer):
        raise MalformedMessage("request header cut short")
    return client_id, position


@cache
def has_tagged_response_header(key: int, version: int) -> bool:
    """Whether responses to that request begin with a version 1 header."""
    return key != API_VERSIONS_KEY and APIS[key].is_flexible(version)


# ---- the client's side


def encode_request_header(key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    name = b"" if client_id is None else client_id.encode()
    data = _pack_fixed(key, version, correlation_id, -1 if client_id is None else len(name)) + name
    return data + b"\0" if APIS[key].is_flexible(version) else data


def decode_response_header(buffer: Buffer, key: int, version: int, position: int = 0) -> tuple[int, int]:
    """The correlation id and where the body starts."""
    try:
        (correlation_id,) = _correlation.unpack_from(buffer, position)
        position += 4
        if has_tagged_response_header(key, version):
            count = buffer[position]
            position += 1
            if count:
                position = skip_tagged_fields(buffer, count, position)
    except (IndexError, struct.error):
        raise MalformedMessage("response header cut short") from None
    if position > len(buffer):
        raise MalformedMessage("response header cut short")
    return correlation_id, position
