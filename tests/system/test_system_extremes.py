"""Requests that are well-formed and ask for the oddest things: numbers at their bounds, strings that are empty or as
long as they may be, nulls, names that exist and names that can't. Every one gets an answer, or its connection is
closed; none meets a bug, and the broker goes on."""

from __future__ import annotations

import asyncio
import random
import re
import struct
from collections import Counter
from typing import Any

import msgspec

from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.facts import FieldFacts, struct_fields
from headpond.protocol.schema.api_versions import ApiVersionsRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from support.batches import Rec, build
from support.broker import BrokerProcess
from support.served import SERVED
from support.verbs import create_topic
from support.wire import API_KEYS, Wire, request_header

REQUESTS = 1_000
AT_ONCE = 30
PATIENCE_S = 2.0
"""Some are parked (a join, a long poll): those are given up."""

BUGS = re.compile("Traceback|Fatal error|met a bug")
BOUNDS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint16": 16, "uint32": 32}
NAMES = ["t", "t2", "g", "x", "__consumer_offsets", "__transaction_state", "1", ""]
ODD_TEXTS = [
    *[
        "\0",
        "a/b\0c",
        "/",
        "..",
        "é",
        "\U0001f600",
        "%s{}",
        "a" * 32_767,
        "漢" * 10_922,
        "\U0001f600" * 8_191,
        "9" * 5_000,
    ],
    *["(", "a{99999999999}", "(?i)[\0-\U0010ffff]*", ".*", "client_id=(((", "NaN", "-1", "1.2.3.4:" + "9" * 5_000],
]
SETTINGS = [
    *["match", "interval.ms", "cleanup.policy", "retention.ms", "consumer.session.timeout.ms", "no.such.setting"],
    *["max.connections.per.ip.overrides", "segment.bytes", "compression.type", "headpond.flush"],
]


class Odd:
    """Makes up requests. ``random``: seeded, so that what is found can be found again."""

    def __init__(self, random: random.Random) -> None:
        self.random = random

    def request(self) -> tuple[int, int, Any]:
        key = API_KEYS[self.random.choice(sorted(SERVED))]
        version = self.random.choice(APIS[key].versions)
        return key, version, self._struct(APIS[key].request, APIS[key].request, version)

    def _struct(self, kind: type[msgspec.Struct], message: Any, version: int) -> Any:
        fields = [field for field in struct_fields(kind, message) if version in field.versions]
        return kind(**{field.name: self._value(field, message, version) for field in fields})

    def _value(self, field: FieldFacts, message: Any, version: int) -> Any:
        if version in field.nullable and self.random.random() < 0.15:
            return None
        if not field.is_list:
            return self._one(field, message, version)
        return [self._one(field, message, version) for _ in range(self.random.choice((0, 1, 1, 1, 2)))]

    def _one(self, field: FieldFacts, message: Any, version: int) -> Any:
        if field.struct is not None:
            return self._struct(field.struct, message, version)
        if field.wire in BOUNDS:
            return self._number(BOUNDS[field.wire], is_signed=field.wire.startswith("int"))
        if field.wire == "string":
            return self._text(field)
        if field.wire == "uuid":
            return self.random.choice((bytes(16), b"\xff" * 16, bytes(15) + b"\1"))
        if field.wire == "bool":
            return self.random.random() < 0.5
        if field.wire == "float64":
            return self.random.choice((0.0, -1.0, float("nan"), float("inf"), 1e308))
        if field.wire == "records" and self.random.random() < 0.7:
            return build([Rec(value=b"v")])
        return self.random.choice((b"", b"\0", b"\xff" * 100, bytes(1_000)))

    def _number(self, bits: int, *, is_signed: bool) -> int:
        most = (1 << bits) - 1
        low = -most - 1 if is_signed else 0
        usual = (0, 1, 2, 4, 16, 32, 100, 30_000)
        return self.random.choice((low, most, max(low, -1), max(low, -2), *(each for each in usual if each <= most)))

    def _text(self, field: FieldFacts) -> str:
        chance = self.random.random()
        if field.name in ("name", "configuration_keys") and chance < 0.4:
            return self.random.choice(SETTINGS)
        return self.random.choice(NAMES if chance < 0.7 else ODD_TEXTS)


async def ask(address: tuple[str, int], key: int, version: int, request: Any, client_id: str) -> str:
    """ "answered", "closed" or "parked"."""
    is_flexible = APIS[key].is_flexible(version)
    body = request_header(key, version, 7, client_id, flexible=is_flexible) + encoder(type(request), version)(request)
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(struct.pack(">i", len(body)) + body)
        async with asyncio.timeout(PATIENCE_S):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            frame = await reader.readexactly(size)
        start = 5 if is_flexible and key != 18 else 4
        _, end = decoder(APIS[key].response, version)(frame, start)
        assert end == len(frame)
        return "answered"
    except (ConnectionError, asyncio.IncompleteReadError):
        return "closed"
    except TimeoutError:
        return "parked"
    finally:
        writer.close()


async def ask_many(bootstrap: str, seed: int, count: int) -> Counter[str]:
    host, _, port = bootstrap.rpartition(":")
    odd, told = Odd(random.Random(seed)), Counter[str]()
    asked = [(*odd.request(), odd.random.choice(("c", "c", "c" * 32_767))) for _ in range(count)]

    async def ask_next() -> None:
        while asked:
            told[await ask((host, int(port)), *asked.pop())] += 1

    await asyncio.gather(*(ask_next() for _ in range(AT_ONCE)))
    return told


def test_no_well_formed_request_meets_a_bug(fresh_broker: BrokerProcess) -> None:
    with Wire(fresh_broker.bootstrap_servers) as wire:
        create_topic(wire, "t")
        create_topic(wire, "t2", configs={"cleanup.policy": "compact"})
        for kind in (0, 1):
            wire.call(FindCoordinatorRequest(key="g", key_type=kind), 1)
    told = asyncio.run(ask_many(fresh_broker.bootstrap_servers, 1, REQUESTS))
    assert told["answered"] > REQUESTS / 2, told
    with Wire(fresh_broker.bootstrap_servers) as wire:
        assert wire.call(ApiVersionsRequest(), 0).error_code == 0
    fresh_broker.stop()
    assert not BUGS.search(fresh_broker.logs()), fresh_broker.logs()
    fresh_broker.start()  # what it has stored can be read; the log of this life is looked through at the end
    fresh_broker.stop()
