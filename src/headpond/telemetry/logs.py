"""Log lines: one per record, for people (``text``) or for machines (``json``), and never a flood.

Quiet by default: warnings, and the few lines of ``headpond.lifecycle`` (started, stopping, stopped). Messages of
one kind are limited: after ``BURST`` of them within ``WINDOW_S`` the rest is only counted, and the next one that is
said tells how many were not. A client that sends garbage all day so costs some lines per minute. CRITICAL is always
said.

Text that comes from outside is never printed raw: control characters are escaped, so that a line stays a line.
Called from workers too; the handler's own lock covers the state here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TextIO

from headpond.telemetry.metrics import Point

BURST = 10
WINDOW_S = 60.0
"""So many messages of one kind (logger, level and wording before its arguments are filled in) are said in that time."""
KINDS_MAX = 1_000
"""Kinds that are remembered; the wordings are the code's own, so that this is never reached unless somebody errs."""

LIFECYCLE = "headpond.lifecycle"
LEVELS: Mapping[str, int] = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "WARN": 30, "ERROR": 40}

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure(*, format: str, level: str, stream: TextIO) -> None:
    """Everything that is logged goes to ``stream`` from now on; what was configured before is replaced."""
    number = LEVELS[level.upper()]
    handler = BoundedHandler(stream)
    handler.setFormatter(JsonLines() if format == "json" else TextLines())
    root = logging.getLogger()
    for former in list(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(number)
    logging.getLogger(LIFECYCLE).setLevel(min(number, logging.INFO) if number < logging.ERROR else number)
    logging.raiseExceptions = False  # a closed stderr is no reason to print about it


class Messages:
    """What was said and what was not, for the metrics. One for the process, as logging itself is."""

    def __init__(self) -> None:
        self.by_level: dict[str, int] = dict.fromkeys(("WARNING", "ERROR", "CRITICAL"), 0)
        self.suppressed = 0

    def points(self) -> Iterator[Point]:
        for level, count in list(self.by_level.items()):
            yield (level,), count

    def suppressed_points(self) -> Iterator[Point]:
        yield (), self.suppressed


MESSAGES = Messages()


class _Kind:
    __slots__ = ("said", "since_s", "unsaid")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.said = 0
        self.unsaid = 0


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Writes lines, and counts instead what is said too often. The time is the record's own."""

    def __init__(self, stream: TextIO, messages: Messages = MESSAGES) -> None:
        super().__init__(stream)
        self._messages = messages
        self._kinds: dict[tuple[str, int, str], _Kind] = {}

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname
        self._messages.by_level[level] = self._messages.by_level.get(level, 0) + 1
        if record.levelno < logging.CRITICAL:
            unsaid = self._unsaid_before(record)
            if unsaid is None:
                self._messages.suppressed += 1
                return
            if unsaid:
                record.not_logged = unsaid
        super().emit(record)

    def _unsaid_before(self, record: logging.LogRecord) -> int | None:
        """How many of its kind were not said before it; None: neither is this one."""
        key = (record.name, record.levelno, str(record.msg))
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= KINDS_MAX:
                self._kinds.clear()
            kind = self._kinds[key] = _Kind(record.created)
        if not 0 <= record.created - kind.since_s < WINDOW_S:  # the clock may have been set back
            unsaid, kind.unsaid, kind.said, kind.since_s = kind.unsaid, 0, 1, record.created
            return unsaid
        kind.said += 1
        if kind.said > BURST:
            kind.unsaid += 1
            return None
        return 0


class TextLines(logging.Formatter):
    """``2026-11-16T00:07:28.123Z WARNING headpond.server: ...``; a traceback follows in lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname} {record.name}: {printable(record.getMessage())}"
        if (unsaid := getattr(record, "not_logged", 0)) > 0:
            line += f" ({unsaid} more like this were not logged)"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n{printable(each)}" for each in trace.split("\n"))
        return line


class JsonLines(logging.Formatter):
    """One object per line: time, level, logger, message, what was passed as ``extra``, and the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        from msgspec.json import encode

        fields: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in vars(record).items():
            if name not in _STANDARD and name not in fields:
                fields[name] = value if isinstance(value, str | int | float | bool | None) else str(value)
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        try:
            return encode(fields).decode()
        except (TypeError, ValueError, UnicodeEncodeError):  # a lone surrogate out of somebody's bytes
            return encode({name: printable(str(value)) for name, value in fields.items()}).decode()


def printable(text: str) -> str:
    """Control characters and lone surrogates as escapes: one message, one line, and no colours out of a client's id."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03d}Z"
