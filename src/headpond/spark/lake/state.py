"""What a lake knows of a topic: how far it is archived, and which files hold the records. Plain values.

One JSON file per topic, replaced as a whole: that is the moment of a commit. ``moves`` are the renames that make the
commit's files visible. They are done right after it, and again by whoever finds that a crash has left some undone.
"""

from __future__ import annotations

import msgspec

from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.layout import FORMAT


class Reach(msgspec.Struct, frozen=True):
    """Of one partition."""

    first_offset: int
    """Where archiving began."""
    next_offset: int
    """Where it goes on: everything before it is in the lake, or was not there to be archived."""


class Span(msgspec.Struct, frozen=True, array_like=True):
    from_offset: int
    end_offset: int


class Hole(msgspec.Struct, frozen=True, array_like=True):
    """Offsets that were deleted before they were archived, and the user went on."""

    partition: int
    from_offset: int
    end_offset: int


class LakeFile(msgspec.Struct, frozen=True):
    size_bytes: int
    records: int
    spans: dict[int, Span]
    """By partition: no record of it in this file lies outside. (Not: all inside of it are in this file.)"""


class Move(msgspec.Struct, frozen=True, array_like=True):
    staged: str
    final: str


class TopicState(msgspec.Struct, frozen=True):
    topic: str
    cluster_id: str
    topic_id: str
    """"" where the broker has none."""
    version: int = 0
    """Counts commits."""
    records: int = 0
    partitions: dict[int, Reach] = {}
    files: dict[str, LakeFile] = {}
    """By path in the lake."""
    moves: list[Move] = []
    holes: list[Hole] = []
    format: int = FORMAT

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


class LakeMark(msgspec.Struct, frozen=True):
    """Of ``lake.json``."""

    id: str
    format: int = FORMAT

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


def read_state(data: bytes, path: str) -> TopicState:
    try:
        state = msgspec.json.decode(data, type=TopicState)
    except msgspec.DecodeError as error:
        raise LakeError(f"{path} is damaged: {error}") from error
    _check_format(state.format, path)
    return state


def read_mark(data: bytes, path: str) -> LakeMark:
    try:
        mark = msgspec.json.decode(data, type=LakeMark)
    except msgspec.DecodeError as error:
        raise LakeError(f"{path} is damaged: {error}") from error
    _check_format(mark.format, path)
    return mark


def _check_format(found: int, path: str) -> None:
    if found > FORMAT:
        raise LakeError(f"{path} was written by a newer headpond: update this one")
