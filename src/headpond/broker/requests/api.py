"""How a handler file says which API it serves."""

from __future__ import annotations

from typing import NamedTuple


class Api(NamedTuple):
    """Stands beside the code that keeps the promise; a test compares it with the protocol's table."""

    key: int
    versions: range
    name: str
