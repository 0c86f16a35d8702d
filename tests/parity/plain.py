"""Messages to plain data and back: what scripts ask with, and what recordings hold.

Plain data leaves out what a field's default says anyway. Record sets become their batches' headers and the CRC over
what is in them; a batch cut off at the end of a Fetch answer is left out, as every client does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headpond.protocol.apis import APIS
from headpond.protocol.facts import FieldFacts, struct_fields
from headpond.protocol.types import Message
from support.batches import split
from support.wire import API_KEYS

LOG_APPEND_TIME = 8

Plain = dict[str, Any]


def make_request(api: str, version: int, fields: Mapping[str, Any]) -> Any:
    """The request with those of ``fields`` that its version has."""
    message = APIS[API_KEYS[api]].request
    return _make(message, message, version, fields)


def _make(struct: type[Any], message: type[Message], version: int, fields: Mapping[str, Any]) -> Any:
    facts = {each.name: each for each in struct_fields(struct, message)}
    assert fields.keys() <= facts.keys(), f"{struct.__name__} has no {fields.keys() - facts.keys()}"
    present = {name: value for name, value in fields.items() if version in facts[name].versions}
    return struct(**{name: _make_value(facts[name], message, version, value) for name, value in present.items()})


def _make_value(facts: FieldFacts, message: type[Message], version: int, value: Any) -> Any:
    if facts.struct is None or value is None:
        return value
    if facts.is_list:
        return [_make(facts.struct, message, version, each) for each in value]
    return _make(facts.struct, message, version, value)


def plain(message: Message, version: int) -> Plain:
    return _plain_struct(message, type(message), version)


def _plain_struct(struct: msgspec.Struct, message: type[Message], version: int) -> Plain:
    out = {}
    for facts in struct_fields(type(struct), message):
        value = getattr(struct, facts.name)
        if version in facts.versions and value != facts.default:
            out[facts.name] = _plain_value(facts, value, message, version)
    return out


def _plain_value(facts: FieldFacts, value: Any, message: type[Message], version: int) -> Any:
    if value is None:
        return None
    if facts.is_list:
        return [_plain_element(facts, each, message, version) for each in value]
    return _plain_element(facts, value, message, version)


def _plain_element(facts: FieldFacts, value: Any, message: type[Message], version: int) -> Any:
    if facts.wire == "struct":
        return None if value is None else _plain_struct(value, message, version)
    if facts.wire == "records":
        return [_plain_batch(batch) for batch in split(value)]
    return value  # uuids and bytes are made readable when variables are put back


def _plain_batch(batch: Any) -> Plain:
    shown = {name: value for name, value in batch._asdict().items() if name not in ("data", "magic")}
    shown["crc_is_right"] = batch.crc_is_right
    if batch.attributes & LOG_APPEND_TIME:
        shown["crc"] = "of its time"  # the CRC covers the time
    return shown


def at(message: Any, path: str) -> Any:
    """``topics[0].topic_id`` of a message."""
    for part in path.replace("]", "").replace("[", ".").split("."):
        message = message[int(part)] if part.isdigit() else getattr(message, part)
    return message
