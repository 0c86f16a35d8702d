"""Kafka's checkpoint files: a version, a count, and one line per entry.

    0                               0
    2                               1
    orders 0 1500                   7 1500          <- leader-epoch-checkpoint: epoch, start offset
    orders 1 1477

Written to a temporary file and renamed: after a crash the old or the new content is there. Losing one costs time
(more to scan) and never data, so a reader that finds nonsense says so and carries on with nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from headpond.model import TopicPartition
from headpond.ports import FileSystem

VERSION = 0
_log = logging.getLogger(__name__)


class CorruptCheckpoint(Exception):
    pass


def encode_lines(lines: Iterable[str]) -> bytes:
    rows = list(lines)
    return "\n".join((str(VERSION), str(len(rows)), *rows, "")).encode()


def decode_lines(data: bytes) -> list[str]:
    """The entries' lines. An empty file is an empty checkpoint: Kafka creates it so."""
    rows = data.decode("utf-8", "replace").splitlines()
    if not rows:
        return []
    if rows[0] != str(VERSION):
        raise CorruptCheckpoint(f"version {rows[0][:20]!r}, only {VERSION} is known")
    if len(rows) == 1:
        return []
    if not rows[1].isdigit() or int(rows[1]) != len(rows) - 2:
        raise CorruptCheckpoint(f"{len(rows) - 2} lines, {rows[1][:20]!r} were announced")
    return rows[2:]


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return encode_lines(f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items())


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for row in decode_lines(data):
        parts = row.split()
        if len(parts) != 3:
            raise CorruptCheckpoint(f"malformed line {row[:100]!r}")
        try:
            offsets[TopicPartition(parts[0], int(parts[1]))] = int(parts[2])
        except ValueError:
            raise CorruptCheckpoint(f"malformed line {row[:100]!r}") from None
    return offsets


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, int]:
    """Blocking. What the file says; nothing when it is missing or damaged."""
    if not fs.exists(path):
        return {}
    try:
        return decode_offsets(fs.read_file(path))
    except CorruptCheckpoint as error:
        _log.warning("ignored the damaged checkpoint %s: %s", path, error)
        return {}
