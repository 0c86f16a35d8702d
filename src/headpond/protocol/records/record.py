"""One record as people see it: absolute offset and timestamp, key, value, headers."""

from __future__ import annotations

from typing import NamedTuple

Header = tuple[str, bytes | None]
"""Keys that are not UTF-8 keep their bytes as surrogate escapes, so that what was read can be written back."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
