"""A record as JSON, both ways: what ``consume --json`` prints, ``produce --json`` takes.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000, "key": "k", "value": "v",
     "headers": [{"key": "h", "value": "x"}]}

Bytes that are UTF-8 stand as text, others as base64 under the same name with ``_base64`` behind it; null is null. So
nothing is lost: a topic printed and written again is the same, byte for byte. When writing, ``headers`` may also be an
object, and a value that is a number, true, false, an object or an array stands for its own JSON text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

Header = tuple[str, bytes | None]
_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "key_base64", "value", "value_base64", "headers")
_HEADER_FIELDS = ("key", "key_base64", "value", "value_base64")
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
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRecord(f"invalid JSON: {_reason(error)}") from None
    if not isinstance(found, dict):
        raise BadRecord('it should be an object, such as {"key": "k", "value": "v"}')
    _check_names(found, _FIELDS)
    if "value" not in found and "value_base64" not in found:
        raise BadRecord("it has no value; null stands for a tombstone")
    return InputRecord(
        _bytes(found, "key"),
        _bytes(found, "value"),
        _headers(found.get("headers")),
        _whole_number(found, "partition", PARTITION_MAX),
        _whole_number(found, "timestamp", TIMESTAMP_MAX),
    )


def _reason(error: Exception) -> str:
    text = str(error).removeprefix("JSON is malformed: ")
    return text[:1].lower() + text[1:]


def _check_names(found: dict[str, Any], known: tuple[str, ...]) -> None:
    from penstock.cli.failures import nearest

    for name in found:
        if name not in known:
            raise BadRecord(f"it has no field {name!r}{nearest(name, known) or ' (fields: ' + ', '.join(known) + ')'}")


def _bytes(found: dict[str, Any], name: str) -> bytes | None:
    encoded = found.get(f"{name}_base64")
    plain = found.get(name)
    if encoded is None:
        if plain is None or isinstance(plain, str):
            return None if plain is None else plain.encode()
        return msgspec.json.encode(plain)
    if plain is not None:
        raise BadRecord(f"it has both {name} and {name}_base64")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise BadRecord(f"{name}_base64 is no base64") from None


def _headers(found: Any) -> tuple[Header, ...]:
    if found is None:
        return ()
    if isinstance(found, dict):
        return tuple((name, _bytes({"value": value}, "value")) for name, value in found.items())
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BadRecord('headers should be an object or a list of {"key": ..., "value": ...}')
    headers: list[Header] = []
    for each in found:
        _check_names(each, _HEADER_FIELDS)
        name = _bytes(each, "key")
        if name is None:
            raise BadRecord("a header has no key")
        headers.append((name.decode("utf-8", "surrogateescape"), _bytes(each, "value")))
    return tuple(headers)


def _whole_number(found: dict[str, Any], name: str, maximum: int) -> int | None:
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
        raise BadRecord(f"{name} should be a whole number from 0 on, not {msgspec.json.encode(value).decode()[:50]}")
    return value
