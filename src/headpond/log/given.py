"""What a caller gives as a record: bytes or text, checked before anything is queued."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headpond.log.errors import RecordTooLarge
from headpond.protocol.records.longs import LONG_MAX
from headpond.protocol.records.record import Header, Record

Data = bytes | bytearray | memoryview | str | None
"""Text is written as UTF-8."""
Headers = Mapping[str, Data] | Iterable[tuple[str, Data]]

RECORD_BYTES_MAX = 16 * 1024 * 1024
"""Key, value and headers of one record. A consumer has to take a whole batch into memory."""
RECORD_OVERHEAD_BYTES = 21
"""More than what a record adds to its own bytes, and a header of a record to its: lengths, offset, time."""


class NewRecord(NamedTuple):
    """For ``append_many``. Only the value is needed."""

    value: Data
    key: Data = None
    headers: Headers = ()
    timestamp: int | None = None
    """Milliseconds since 1970; None: now."""


Appendable = NewRecord | bytes | bytearray | memoryview | str | None
"""A record, or the value of one."""


class Sized(NamedTuple):
    record: Record  # with offset 0
    size_bytes: int  # at most, in a batch


def record_of(given: Appendable, now_ms: int) -> Sized:
    """Raises ``TypeError``, ``ValueError``, ``RecordTooLarge``."""
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    if type(given) is bytes:  # the usual case
        key, value, headers, timestamp = None, given, (), now_ms
        size_bytes = len(given) + RECORD_OVERHEAD_BYTES
    elif isinstance(given, NewRecord):
        value = _data(given.value, "the value")
        key = _data(given.key, "the key")
        headers, header_bytes = _headers(given.headers) if given.headers else ((), 0)
        timestamp = now_ms if given.timestamp is None else _timestamp(given.timestamp)
        size_bytes = len(value or b"") + len(key or b"") + header_bytes + RECORD_OVERHEAD_BYTES
    else:
        key, value, headers, timestamp = None, _data(given, "the value"), (), now_ms
        size_bytes = len(value or b"") + RECORD_OVERHEAD_BYTES
    if size_bytes > RECORD_BYTES_MAX:
        raise RecordTooLarge(f"a record of {size_bytes} bytes is too large: {RECORD_BYTES_MAX} are allowed")
    return Sized(Record(0, timestamp, key, value, headers), size_bytes)


def _data(given: Data, what: str) -> bytes | None:
    if given is None or type(given) is bytes:
        return given
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    raise TypeError(f"{what} is {_shown(given)}: it should be bytes, str or None")


def _headers(given: Headers) -> tuple[tuple[Header, ...], int]:
    pairs = given.items() if isinstance(given, Mapping) else given
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise TypeError(f"the headers are {_shown(pairs)}: they should be a dict or a list of pairs")
    found: list[Header] = []
    size_bytes = 0
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(f"a header is {_shown(pair)}: it should be a pair of name and value")
        value = _data(pair[1], f"the header {pair[0]!r}")
        pair[0].encode("utf-8", "surrogateescape")  # raises UnicodeEncodeError here, and not on the log's thread
        found.append((pair[0], value))
        size_bytes += 4 * len(pair[0]) + len(value or b"") + RECORD_OVERHEAD_BYTES
    return tuple(found), size_bytes


def _timestamp(given: object) -> int:
    timestamp = whole_number(given, "the timestamp")
    if not 0 <= timestamp <= LONG_MAX:
        raise ValueError(f"the timestamp {timestamp} is out of range: it should be milliseconds since 1970")
    return timestamp


def whole_number(given: object, what: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{what} is {_shown(given)}: it should be an int")
    return given


def _shown(thing: object) -> str:
    text = repr(thing)
    return f"the {type(thing).__name__} {text if len(text) <= 60 else text[:60] + '...'}"
