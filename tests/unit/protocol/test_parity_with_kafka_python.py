"""Byte parity with kafka-python, an independent implementation, over all messages and versions that it shares with us.

It reads what we wrote, finds in it what we meant, and writes the same bytes again, which we read back.
"""

from __future__ import annotations

import uuid
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl
import msgspec
import pytest

from headpond.protocol.codec import decoder, encoder
from headpond.protocol.facts import struct_fields
from headpond.protocol.schema.api_versions import ApiVersionsResponse
from headpond.protocol.types import Message
from unit.protocol.made_up_messages import all_messages, for_all, message_name, messages

PLACES = (
    kafka.protocol.admin,
    kafka.protocol.consumer,
    kafka.protocol.metadata,
    kafka.protocol.producer,
    kafka.protocol.sasl,
)


def their_class(message: type[Message]) -> Any:
    return next((getattr(place, message.__name__) for place in PLACES if hasattr(place, message.__name__)), None)


SHARED = [message for message in all_messages() if message.KEY >= 0 and their_class(message) is not None]


def same(ours: Any, theirs: Any, message: type[Message], version: int) -> bool:
    """Whether their value says what ours does."""
    if isinstance(ours, msgspec.Struct):
        if theirs is None:  # a tagged struct that was not sent
            return ours == type(ours)()
        return all(
            same(getattr(ours, field.name), their_value(theirs, field.name), message, version)
            for field in struct_fields(type(ours), message)
            if version in field.versions
        )
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(same(a, b, message, version) for a, b in zip(ours, theirs, strict=True))
    if isinstance(theirs, uuid.UUID):
        return bool(ours == theirs.bytes)
    if isinstance(theirs, set):  # a bit field
        return {bit for bit in range(32) if ours >> bit & 1} == theirs
    if theirs is None:  # null, an id of zeros, or a bit field that says "not asked for"
        return ours is None or ours in (bytes(16), -(2**31))
    return bool(ours == theirs)


def their_value(theirs: Any, name: str) -> Any:
    # They call it authorized_operations everywhere.
    for prefix in ("", "cluster_", "topic_"):
        if hasattr(theirs, name.removeprefix(prefix)):
            return getattr(theirs, name.removeprefix(prefix))
    raise AttributeError(name)


def test_kafka_python_has_the_requests_of_producers_consumers_and_administrators() -> None:
    assert len(SHARED) > 100


@pytest.mark.parametrize("message", SHARED, ids=message_name)
def test_kafka_python_reads_and_writes_the_same_bytes(message: type[Message]) -> None:
    theirs = their_class(message)
    for version in message.VERSIONS:
        if version > theirs.max_version:
            continue
        encode, decode = encoder(message, version), decoder(message, version)

        def check(made_up, version=version, encode=encode, decode=decode):
            if message is ApiVersionsResponse:
                made_up.error_code = 0  # with an error, they read a version 0 body whatever was asked for
            data = encode(made_up)
            entity = theirs.decode(data, version=version)
            assert same(made_up, entity, message, version), entity
            entity._header = None  # their decoder leaves it unset, their encoder wants it
            written = entity.encode(version=version)
            assert written == data
            assert decode(written, 0)[0] == made_up

        for_all(messages(message, version), check, examples=8)
