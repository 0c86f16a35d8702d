"""Byte parity with kio, an independent implementation, over all messages and versions that it shares with us.

It reads what we wrote, finds in it what we meant, and writes the same bytes again, which we read back.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import io
import pkgutil
import re
import uuid
from typing import Any

import kio.schema
import pytest
from kio.serial import entity_reader, entity_writer

from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.facts import struct_fields
from headpond.protocol.types import Message
from unit.protocol.made_up_messages import all_messages, for_all, message_name, messages

KIO_MODULES = {module.name for module in pkgutil.iter_modules(kio.schema.__path__)}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MS = datetime.timedelta(milliseconds=1)


def kio_place(message: type[Message]) -> tuple[str, str]:
    """kio's folder and file of a message."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", message.__name__).lower()
    api, _, kind = snake.rpartition("_")
    return (api, kind) if kind in ("request", "response") else (snake, "data")


def kio_class(message: type[Message], version: int) -> type[Any]:
    folder, file = kio_place(message)
    return getattr(importlib.import_module(f"kio.schema.{folder}.v{version}.{file}"), message.__name__)


SHARED = [message for message in all_messages() if kio_place(message)[0] in KIO_MODULES]


def same(ours: Any, theirs: Any, message: type[Message], version: int) -> bool:
    """Whether their value says what ours does; they have types of their own for times, ids and lists."""
    if dataclasses.is_dataclass(theirs):
        mine = [field for field in struct_fields(type(ours), message) if version in field.versions]
        others = dataclasses.fields(theirs)
        return len(mine) == len(others) and all(
            a.name.startswith(b.name.rstrip("_"))
            and same(getattr(ours, a.name), getattr(theirs, b.name), message, version)
            for a, b in zip(mine, others, strict=True)
        )
    if isinstance(theirs, tuple):
        return len(ours) == len(theirs) and all(same(a, b, message, version) for a, b in zip(ours, theirs, strict=True))
    if isinstance(theirs, uuid.UUID):
        return bool(ours == theirs.bytes)
    if isinstance(theirs, datetime.timedelta):
        return bool(ours == theirs // MS)
    if isinstance(theirs, datetime.datetime):
        return bool(ours == (theirs - EPOCH) // MS)
    if theirs is None:
        return ours is None or ours == bytes(16)
    return bool(ours == theirs)


def test_kio_has_every_request_and_response() -> None:
    assert {api.request for api in APIS.values()} | {api.response for api in APIS.values()} <= set(SHARED)


@pytest.mark.parametrize("message", SHARED, ids=message_name)
def test_kio_reads_and_writes_the_same_bytes(message: type[Message]) -> None:
    for version in message.VERSIONS:
        encode, decode = encoder(message, version), decoder(message, version)
        theirs = kio_class(message, version)
        read, write = entity_reader(theirs), entity_writer(theirs)

        def check(made_up, version=version, encode=encode, decode=decode, read=read, write=write):
            data = encode(made_up)
            entity, size = read(data, 0)
            assert size == len(data)
            assert same(made_up, entity, message, version), entity
            written = io.BytesIO()
            write(written, entity)
            assert written.getvalue() == data
            assert decode(written.getvalue(), 0)[0] == made_up

        for_all(messages(message, version, realistic=True), check, examples=8)
