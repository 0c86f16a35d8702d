"""Reads the values of options: numbers, truth, durations, and the three JSON forms. Raises ``WrongOption``.

assign                      {"orders": [0, 1]}
startingOffsets             {"orders": {"0": 23, "1": -2}}          -2 earliest, -1 latest
startingOffsetsByTimestamp  {"orders": {"0": 1700000000000}}
"""

from __future__ import annotations

import json
import re
from typing import Any

from headpond.client.offsets import EARLIEST, LATEST
from headpond.model import TopicPartition
from headpond.spark.kafka.errors import WrongOption

LONG_MAX = (1 << 63) - 1
INT_MAX = (1 << 31) - 1
TEXT_SHOWN_MAX = 80

_DURATION = re.compile(r"(-?\d+)\s*([a-z]*)", re.IGNORECASE)
_UNIT_MS = {
    "": 1.0,
    "us": 0.001,
    "ms": 1.0,
    "s": 1_000.0,
    "m": 60_000.0,
    "min": 60_000.0,
    "h": 3_600_000.0,
    "d": 86_400_000.0,
}


def read_whole_number(name: str, text: str, *, at_least: int, at_most: int = LONG_MAX) -> int:
    stripped = text.strip()
    if not re.fullmatch(r"[+-]?\d+", stripped, re.ASCII) or not at_least <= int(stripped) <= at_most:
        span = f"from {at_least} on" if at_most == LONG_MAX else f"from {at_least} to {at_most}"
        raise WrongOption(f"{name}: {_shown(text)} is no whole number {span}")
    return int(stripped)


def read_truth(name: str, text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise WrongOption(f"{name}: {_shown(text)} is neither true nor false")
    return lowered == "true"


def read_duration_ms(name: str, text: str) -> int:
    """``15m``, ``30s``, ``500ms``; a bare number is milliseconds, as Spark reads times."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or found[2].lower() not in _UNIT_MS or int(found[1]) < 0:
        raise WrongOption(f"{name}: {_shown(text)} is no time; write it as 500ms, 30s, 15m, 1h or 1d")
    return int(int(found[1]) * _UNIT_MS[found[2].lower()])


def read_names(name: str, text: str) -> tuple[str, ...]:
    """``a, b``: each once, in order."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise WrongOption(f"{name} names no topic")
    return names


def read_assignment(name: str, text: str) -> tuple[TopicPartition, ...]:
    found = set()
    for topic, partitions in _read_object(name, text, '{"topic": [0, 1]}').items():
        if not isinstance(partitions, list):
            raise WrongOption(f'{name}: {topic!r} has no list of partitions; write {{"topic": [0, 1]}}')
        found |= {TopicPartition(topic, _read_partition(name, topic, one)) for one in partitions}
    if not found:
        raise WrongOption(f"{name} names no partition")
    return tuple(sorted(found))


def read_offsets(name: str, text: str) -> dict[TopicPartition, int]:
    offsets = _read_partition_map(name, text, '{"topic": {"0": 23, "1": -2}}')
    for tp, offset in offsets.items():
        if offset < 0 and offset not in (EARLIEST, LATEST):
            raise WrongOption(f"{name}: {offset} of {tp} is no offset; -2 is earliest, -1 is latest")
    return offsets


def read_timestamps(name: str, text: str) -> dict[TopicPartition, int]:
    timestamps = _read_partition_map(name, text, '{"topic": {"0": 1700000000000}}')
    for tp, timestamp_ms in timestamps.items():
        if timestamp_ms < 0:
            raise WrongOption(f"{name}: {timestamp_ms} of {tp} is no timestamp: milliseconds since 1970")
    return timestamps


def _read_partition_map(name: str, text: str, example: str) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, by_partition in _read_object(name, text, example).items():
        if not isinstance(by_partition, dict):
            raise WrongOption(f"{name}: {topic!r} has no partitions; write {example}")
        for partition, number in by_partition.items():
            if not isinstance(number, int) or isinstance(number, bool) or abs(number) > LONG_MAX:
                raise WrongOption(f"{name}: partition {partition} of {topic!r} has no whole number; write {example}")
            found[TopicPartition(topic, _read_partition(name, topic, partition))] = number
    return dict(sorted(found.items()))


def _read_partition(name: str, topic: str, value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or int(text) > INT_MAX:
        raise WrongOption(f"{name}: {_shown(text)} is no partition of {topic!r}")
    return int(text)


def _read_object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=lambda pairs: _once(name, pairs))
    except json.JSONDecodeError as error:
        raise WrongOption(f"{name} is no JSON ({error.msg} at character {error.pos}); write {example}") from None
    if not isinstance(found, dict):
        raise WrongOption(f"{name}: {_shown(text)} is no JSON object; write {example}")
    return found


def _once(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, _ in pairs if [one for one, _ in pairs].count(key) > 1)
        raise WrongOption(f"{name} names {twice!r} twice")
    return found


def _shown(text: str) -> str:
    """A value in a message: quoted, and not a page of it."""
    return repr(text if len(text) <= TEXT_SHOWN_MAX else text[:TEXT_SHOWN_MAX] + "...")
