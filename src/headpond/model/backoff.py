"""Pauses between attempts that fail: each twice as long as the one before, up to a limit."""

from __future__ import annotations


class Backoff:
    __slots__ = ("_first_s", "_max_s", "_next_s")

    def __init__(self, first_s: float, max_s: float) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._next_s = first_s

    @property
    def coming_s(self) -> float:
        """What ``next_s`` will give."""
        return self._next_s

    def next_s(self) -> float:
        pause_s = self._next_s
        self._next_s = min(pause_s * 2, self._max_s)
        return pause_s

    def reset(self) -> None:
        """There was a success."""
        self._next_s = self._first_s
