"""What a test writes: a ``Record``, or a shorter form of one; and the sentence for what is neither. What it reads.

Types alone can't refuse everything: a dict and a text are iterables, too, of their keys and of their letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

__tracebackhide__ = True  # a failure points at the line of the test
Text = str | bytes | None
Headers = Mapping[str, Text] | Iterable[tuple[str, Text]]


class Record(NamedTuple):
    """A record as a test writes it. Text is sent as UTF-8."""

    value: Text = None
    key: Text = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    """None: the time at which it is sent."""
    partition: int | None = None
    """None: by the key's hash, or any."""
    offset: int | None = None
    """Ignored, as the topic is: so a ``Record`` can be compared with a ``StoredRecord``."""
    topic: str | None = None


class StoredRecord(NamedTuple):
    """A record as it is in a topic: bytes, and where. It can be written again: anew, to the same partition."""

    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None
    """None: of a record that was written without one, and not read."""
    partition: int
    offset: int
    topic: str


Sendable = Record | StoredRecord | str | bytes | tuple[Text, Text]
"""A whole record, a value, or key and value."""


_NO_LISTS = (str, bytes, bytearray, memoryview, Record, StoredRecord, Mapping)
"""Iterables that are not of records."""


class Whole(NamedTuple):
    """A record in full, with bytes for text."""

    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None
    partition: int | None


def whole(records: Iterable[Sendable]) -> list[Whole]:
    """Raises ``TypeError`` before anything is sent."""
    if isinstance(records, _NO_LISTS) or not _is_iterable(records):
        raise TypeError(
            f"produce() takes a list of records, not {_shown(records)}. A record is a value (str or bytes), a pair of "
            f"key and value, or a Record"
        )
    if isinstance(records, tuple) and len(records) == 2 and all(_is_text(part) for part in records):
        raise TypeError(
            f"produce() takes a list of records, and {_shown(records)} is ambiguous: one record with key and value is "
            f"[{records!r}], two records are {list(records)!r}"
        )
    return [_whole(record, position) for position, record in enumerate(records)]


def _whole(record: Sendable, position: int) -> Whole:
    found: Record | StoredRecord
    if isinstance(record, Record | StoredRecord):
        found = record
    elif isinstance(record, str | bytes):
        found = Record(record)
    elif isinstance(record, tuple) and len(record) == 2:
        found = Record(record[1], record[0])
    else:
        raise TypeError(
            f"record {position} is {_shown(record)}: it should be a value (str or bytes), a pair of key and value, "
            f"or a Record"
        )
    for name in ("timestamp_ms", "partition"):
        number = getattr(found, name)
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise TypeError(f"the {name} of record {position} is {_shown(number)}: it should be an int or None")
    return Whole(
        _data(found.value, f"the value of record {position}"),
        _data(found.key, f"the key of record {position}"),
        _headers(found.headers, position),
        found.timestamp_ms,
        found.partition,
    )


def _headers(headers: Headers, position: int) -> tuple[tuple[str, bytes | None], ...]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(pairs, str | bytes) or not _is_iterable(pairs):
        raise TypeError(
            f"the headers of record {position} are {_shown(pairs)}: they should be a dict or a list of pairs"
        )
    found = []
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(f"a header of record {position} is {_shown(pair)}: it should be a pair of name and value")
        found.append((pair[0], _data(pair[1], f"the header {pair[0]!r} of record {position}")))
    return tuple(found)


def _data(text: Text, what: str) -> bytes | None:
    if not _is_text(text):
        raise TypeError(f"{what} is {_shown(text)}: it should be str, bytes or None")
    return text.encode() if isinstance(text, str) else text


def _is_text(thing: object) -> bool:
    return thing is None or isinstance(thing, str | bytes)


def _is_iterable(thing: object) -> bool:
    return isinstance(thing, Iterable)


def _shown(thing: object) -> str:
    text = repr(thing)
    return f"the {type(thing).__name__} {text if len(text) <= 60 else text[:60] + '...'}"
