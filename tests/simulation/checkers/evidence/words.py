"""How violations speak of records and times."""

from __future__ import annotations

import math

from simulation.history import Operation, Seen, Send


def shown(value: bytes | None) -> str:
    """A key or a value, cut where it gets long."""
    if value is None:
        return "null"
    text = value[:40].decode("ascii", "backslashreplace")
    return repr(text) if len(value) <= 40 else f"{text!r}..."


def record(seen: Seen) -> str:
    return f"{shown(seen.value)} (key {shown(seen.key)}, timestamp {seen.timestamp_ms})"


def at(moment_s: float) -> str:
    if math.isinf(moment_s):
        return "the end"
    return f"{moment_s:.3f} s"


def span(operation: Operation) -> str:
    """When it was asked and answered."""
    ended = "unanswered" if operation.ended_s is None else at(operation.ended_s)
    return f"{at(operation.invoked_s)} to {ended}"


def sender(send: Send) -> str:
    return f"{send.process}, {span(send)}"
