"""Paths for Spark's readers, which take ``*``, ``[a]`` and ``{a,b}`` for patterns; its writers take them literally."""

from __future__ import annotations

import re

_PATTERN = re.compile(r"([{}\[\]*?\\])")


def literal(path: str) -> str:
    """A pattern that stands for this path only."""
    return _PATTERN.sub(r"\\\1", path)
