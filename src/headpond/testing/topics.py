"""One CreateTopics request over a plain socket: a test needs no client library for its topics.

Asks with one fixed version, for the broker is of this very package. Synchronous, so that it works with and without a
running event loop.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from typing import IO

from headpond.model import ErrorCode
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.header import decode_response_header, encode_request_header
from headpond.protocol.schema.create_topics import CreateTopicsRequest, CreateTopicsResponse
from headpond.testing.errors import BrokerFailed, TopicNotCreated
from headpond.testing.values import as_text

__tracebackhide__ = True  # a failure points at the line of the test
VERSION = 7
TIMEOUT_S = 30.0
_SIZE = struct.Struct(">i")


def create_topic(address: tuple[str, int], name: str, partitions: int, config: Mapping[str, object]) -> None:
    """Returns when the topic can be used. Raises ``TopicNotCreated``; ``BrokerFailed`` when there is no answer."""
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=as_text(value))
            for key, value in config.items()
            if value is not None
        ],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(TIMEOUT_S * 1000))
    try:
        (result,) = _ask(address, request).topics
    except OSError as error:
        host, port = address
        raise BrokerFailed(f"no answer from {host}:{port} to the creation of topic {name!r}: {error}") from error
    if result.error_code:
        code = ErrorCode(result.error_code)
        reason = f": {result.error_message}" if result.error_message else ""
        raise TopicNotCreated(f"topic {name!r} was not created, {code.name}{reason}", code)


def _ask(address: tuple[str, int], request: CreateTopicsRequest) -> CreateTopicsResponse:
    body = encode_request_header(request.KEY, VERSION, 0, "headpond-testing")
    body += encoder(CreateTopicsRequest, VERSION)(request)
    with socket.create_connection(address, timeout=TIMEOUT_S) as connection:
        connection.sendall(_SIZE.pack(len(body)) + body)
        with connection.makefile("rb") as stream:
            (size_bytes,) = _SIZE.unpack(_read(stream, 4))
            frame = _read(stream, size_bytes)
    _, position = decode_response_header(frame, request.KEY, VERSION)
    response, _ = decoder(CreateTopicsResponse, VERSION)(frame, position)
    return response


def _read(stream: IO[bytes], size_bytes: int) -> bytes:
    data = stream.read(size_bytes)
    if len(data) < size_bytes:
        raise ConnectionError("the broker closed the connection")
    return data
