"""A record as a line on stdout: its value, with what else was asked for in front of it; or JSON with everything.

Whatever stands in a record is printed byte for byte, but on a terminal: an escape sequence there sets the title, fills
the clipboard or clears the screen, so that what is not printable is escaped, unless ``--raw`` is given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from headpond.cli.common.output import time_in_words
from headpond.cli.common.printable import printable_json, printable_lines
from headpond.cli.common.record_json import Header, record_fields
from headpond.cli.produce.lines import separator_option
from headpond.model import TopicPartition

NULL = b"null"


class RecordLines:
    def __init__(self, options: argparse.Namespace) -> None:
        self._is_json: bool = options.json
        self._key: bool = options.show_key
        self._headers: bool = options.show_headers
        self._offset: bool = options.show_offset
        self._timestamp: bool = options.show_timestamp
        self._is_plain = not (self._key or self._headers or self._offset or self._timestamp)
        self._separator = separator_option(options.separator)
        self._is_escaped = sys.stdout.isatty() and not options.raw

    def line(
        self,
        tp: TopicPartition,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header],
    ) -> bytes:
        line = self._line(tp, offset, timestamp_ms, key, value, headers)
        return _escaped(line, is_json=self._is_json) if self._is_escaped else line

    def _line(
        self,
        tp: TopicPartition,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header],
    ) -> bytes:
        if self._is_json:
            return _json_line(tp, offset, timestamp_ms, key, value, headers)
        text = NULL if value is None else value
        if self._is_plain:
            return text + b"\n"
        parts: list[bytes] = []
        if self._timestamp:
            parts.append(time_in_words(timestamp_ms).encode())
        if self._offset:
            parts.append(f"{tp.partition}:{offset}".encode())
        if self._headers:
            parts.append(b",".join(_header(name, content) for name, content in headers))
        if self._key:
            parts.append(NULL if key is None else key)
        return self._separator.join((*parts, text)) + b"\n"


def _escaped(line: bytes, *, is_json: bool) -> bytes:
    """What a terminal can show, in its character set; bytes that are no text as ``\\xff``."""
    text = printable_json(line.decode()) if is_json else printable_lines(line.decode(errors="backslashreplace"))
    return text.encode(sys.stdout.encoding, "backslashreplace")


def _header(name: str, value: bytes | None) -> bytes:
    return name.encode("utf-8", "surrogateescape") + b"=" + (NULL if value is None else value)


def _json_line(
    tp: TopicPartition,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[Header],
) -> bytes:
    from msgspec.json import encode

    place = {
        "topic": tp.topic,
        "partition": tp.partition,
        "offset": offset,
        "timestamp": timestamp_ms if timestamp_ms >= 0 else None,
    }
    return encode({**place, **record_fields(key, value, headers)}) + b"\n"
