"""Small histories for the checkers' own tests: short names for their parts, and what is right by default."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from simulation.checkers import Check
from simulation.history import Batch, FinalLog, History, Operation, Place, Poll, Seen, Send

PLACE = Place("t", "id-1", 0)
TIMESTAMP_MS = 1_000


def seen(offset: int, value: bytes | None, key: bytes | None = None, timestamp_ms: int = TIMESTAMP_MS) -> Seen:
    return Seen(offset, timestamp_ms, key, value)


def send(value: bytes | None, offset: int = -1, *, s: float = 1.0, took_s: float = 0.1, **others: Any) -> Send:
    """Acknowledged, from ``p1`` to ``t-0``."""
    fields: dict[str, Any] = {
        "process": "p1",
        "invoked_s": s,
        "ended_s": s + took_s,
        "outcome": "ok",
        "topic": "t",
        "partition": 0,
        "timestamp_ms": TIMESTAMP_MS,
    }
    return Send(value=value, offset=offset, **(fields | others))


def poll(position: int, next_position: int, *records: Seen, s: float = 9.0, **others: Any) -> Poll:
    fields: dict[str, Any] = {
        "process": "c1",
        "invoked_s": s,
        "ended_s": s + 0.1,
        "outcome": "ok",
        "place": PLACE,
        "isolation": "read_uncommitted",
    }
    return Poll(position=position, next_position=next_position, records=records, **(fields | others))


def batch(
    *records: Seen, producer: tuple[int, int] = (-1, -1), sequence: int = -1, transactional: bool = False
) -> Batch:
    return Batch(
        records[0].offset, records[-1].offset, 0, producer[0], producer[1], sequence, transactional, "", records
    )


def marker(offset: int, kind: Literal["commit", "abort"], producer: tuple[int, int], timestamp_ms: int = 0) -> Batch:
    record = Seen(offset, timestamp_ms, b"\0\0\0\0", b"\0\0\0\0\0\0")
    return Batch(offset, offset, 0, producer[0], producer[1], -1, True, kind, (record,))


def final(*batches: Batch, place: Place = PLACE, hidden: Iterable[int] = (), **others: Any) -> FinalLog:
    """``hidden``: offsets that read_committed does not show."""
    end = batches[-1].last_offset + 1 if batches else 0
    start = batches[0].base_offset if batches else 0
    data = [each for one in batches if not one.control for each in one.records]
    fields: dict[str, Any] = {
        "log_start_offset": start,
        "high_watermark": end,
        "last_stable_offset": end,
        "log_end_offset": end,
        "committed": tuple(each for each in data if each.offset not in set(hidden)),
        "fetched": batches,
        "on_disk": batches,
    }
    return FinalLog(place=place, **(fields | others))


def history(*operations: Operation, logs: Iterable[FinalLog] = (), **others: Any) -> History:
    in_order = sorted(operations, key=lambda each: each.invoked_s)
    return History(operations=in_order, final_logs={log.place: log for log in logs}, **others)


def with_log(one: History, **changes: Any) -> History:
    """The same with another final log of ``PLACE``."""
    return replace(one, final_logs=one.final_logs | {PLACE: replace(one.final_logs[PLACE], **changes)})


def accuses(check: Check, one: History, *patterns: str) -> None:
    """One sentence for each pattern, and no other."""
    sentences = list(check(one))
    assert len(sentences) == len(patterns), sentences
    for sentence, pattern in zip(sentences, patterns, strict=True):
        assert re.search(pattern, sentence), sentence
        assert "\n" not in sentence


def acquits(check: Check, one: History) -> None:
    assert list(check(one)) == []
