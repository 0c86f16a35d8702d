"""A record as JSON, both ways: what ``consume --json`` prints, ``produce --json`` takes.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000, "key": "k", "value": "v",
     "headers": [{"key": "h", "value": "x"}]}

Bytes that are UTF-8 stand as text, others as base64 under the same name with ``_base64`` behind it; null is null. So
nothing is lost: a topic printed and written again is the same, byte for byte. When writing, ``headers`` may also be an
object, and a value that is a number, true, false, an object or an array stands for its own JSON text, byte for byte as
it is in the line: it is never read, so that 1.10 stays 1.10.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

Header = tuple[str, bytes | None]
Fields = dict[str, msgspec.Raw]
_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "key_base64", "value", "value_base64", "headers")
_HEADER_FIELDS = ("key", "key_base64", "value", "value_base64")
_NULL = msgspec.Raw(b"null")
_FIELDS_OF_LINE = msgspec.json.Decoder(Fields)
_HEADERS = msgspec.json.Decoder(list[Fields] | Fields | None)
_TEXT = msgspec.json.Decoder(str)
_WHOLE_NUMBER = msgspec.json.Decoder(int)
TIMESTAMP_MAX = (1 << 63) - 1
PARTITION_MAX = (1 << 31) - 1


class BadRecord(ValueError):
    """The line is no record; the message says why, without the line's number."""


class InputRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def record_fields(key: bytes | None, value: bytes | None, headers: Iterable[Header]) -> dict[str, Any]:
    fields = {**_field("key", key), **_field("value", value)}
    shown = [
        {**_field("key", name.encode("utf-8", "surrogateescape")), **_field("value", each)} for name, each in headers
    ]
    return {**fields, "headers": shown} if shown else fields


def _field(name: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def parse_record(line: bytes) -> InputRecord:
    """Raises ``BadRecord``."""
    if not line.strip():
        raise BadRecord("the line is empty")
    try:
        return _record(_FIELDS_OF_LINE.decode(line))
    except msgspec.ValidationError:
        raise BadRecord('it should be an object, such as {"key": "k", "value": "v"}') from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRecord(f"invalid JSON: {_reason(error)}") from None
    except RecursionError:
        raise BadRecord("its JSON is nested too deeply") from None


def _record(found: Fields) -> InputRecord:
    _check_names(found, _FIELDS)
    if "value" not in found and "value_base64" not in found:
        raise BadRecord("it has no value; null stands for a tombstone")
    return InputRecord(
        _bytes(found, "key"),
        _bytes(found, "value"),
        _headers(found.get("headers", _NULL)),
        _whole_number(found, "partition", PARTITION_MAX),
        _whole_number(found, "timestamp", TIMESTAMP_MAX),
    )


def _reason(error: Exception) -> str:
    text = str(error).removeprefix("JSON is malformed: ")
    return text[:1].lower() + text[1:]


def _check_names(found: Fields, known: tuple[str, ...]) -> None:
    from headpond.cli.common.failures import did_you_mean

    for name in found:
        if name not in known:
            hint = did_you_mean(name, known) or f" (fields: {', '.join(known)})"
            raise BadRecord(f"it has no field {name!r}{hint}")


def _bytes(found: Fields, name: str) -> bytes | None:
    plain = _text_or_json(found.get(name, _NULL))
    encoded = found.get(f"{name}_base64", _NULL)
    if encoded == _NULL:
        return plain
    if plain is not None:
        raise BadRecord(f"it has both {name} and {name}_base64")
    try:
        return base64.b64decode(msgspec.json.decode(encoded), validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise BadRecord(f"{name}_base64 is no base64") from None


def _text_or_json(raw: msgspec.Raw) -> bytes | None:
    if raw == _NULL:
        return None
    data = bytes(raw)
    if data.startswith(b'"'):
        return _TEXT.decode(data).encode()
    data.decode()  # passed over, its strings were not looked at: JSON is UTF-8
    return data


def _headers(raw: msgspec.Raw) -> tuple[Header, ...]:
    try:
        found = _HEADERS.decode(raw)
    except msgspec.ValidationError:
        raise BadRecord('headers should be an object or a list of {"key": ..., "value": ...}') from None
    if found is None:
        return ()
    if isinstance(found, dict):
        return tuple((name, _text_or_json(value)) for name, value in found.items())
    headers: list[Header] = []
    for each in found:
        _check_names(each, _HEADER_FIELDS)
        name = _bytes(each, "key")
        if name is None:
            raise BadRecord("a header has no key")
        headers.append((name.decode("utf-8", "surrogateescape"), _bytes(each, "value")))
    return tuple(headers)


def _whole_number(found: Fields, name: str, maximum: int) -> int | None:
    raw = found.get(name, _NULL)
    if raw == _NULL:
        return None
    try:
        value = _WHOLE_NUMBER.decode(raw)
    except msgspec.ValidationError:
        value = -1
    if not 0 <= value <= maximum:
        raise BadRecord(f"{name} should be a whole number from 0 on, not {bytes(raw).decode()[:50]}")
    return value
