"""How a copy says what it is a copy of: in its key, since values are unique over a run, copies of one record too."""

from __future__ import annotations

from typing import NamedTuple

from simulation.history import Place

MARK = b"copy "


class Original(NamedTuple):
    """What was copied, and by which group."""

    group: str
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offset {self.offset}"


def copy_key(group: str, source: Place, offset: int) -> bytes:
    return MARK + f"{group} {source.topic} {source.partition} {offset}".encode()


def copy_value(unique: str, original: bytes | None) -> bytes:
    return unique.encode() + b"=" + (original or b"")


def original_of(key: bytes | None) -> Original | None:
    """None: it is no copy."""
    if key is None or not key.startswith(MARK):
        return None
    group, topic, partition, offset = key.removeprefix(MARK).decode().split(" ")
    return Original(group, topic, int(partition), int(offset))


def copied_value(value: bytes) -> bytes:
    """What the original must have."""
    return value.partition(b"=")[2]
