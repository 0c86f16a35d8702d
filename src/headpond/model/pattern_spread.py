"""How much the lengths differ of the texts that an expression matches, in characters: what one match can cost.

An expression that matches texts of one length, such as 3,000 dots, is at one place of itself at each character of a
text. One that matches lengths from 5 to 25 can be at a place of itself while it reads 21 characters. Only behind an
unbounded repetition can it be anywhere, all the time.
"""

from __future__ import annotations

import re

from headpond.model.pattern_syntax import TOKEN

UNBOUNDED = 1 << 40
_EMPTY = re.compile(r"\\[AzbB]")
_END_OF_QUOTE = "\\E"


def spread(text: str) -> int:
    """The longest match minus the shortest, of an expression that RE2 has compiled."""
    groups = [_Group()]
    previous = ""
    for token in TOKEN.finditer(text):
        kind, part = token.lastgroup or "", token[0]
        group = groups[-1]
        if kind in ("open", "named"):
            groups.append(_Group())
        elif kind == "close":
            groups.pop()
            groups[-1].add(*group.end())
        elif kind == "repeat":
            if part != "?" or previous not in ("repeat", "count"):  # else it says which match is preferred
                group.repeat(1 if part == "+" else 0, 1 if part == "?" else UNBOUNDED)
        elif kind == "count":
            least = int(token["least"])
            group.repeat(least, int(token["most"] or UNBOUNDED) if token["more"] else least)
        elif kind == "quoted":
            for _ in part[2:].removesuffix(_END_OF_QUOTE):
                group.add(1, 1)
        elif kind == "plain":
            for each in part:
                if each == "|":
                    group.alternative()
                else:
                    group.add(*((0, 0) if each in "^$" else (1, 1)))
        elif kind != "flags":
            group.add(*((0, 0) if _EMPTY.fullmatch(part) else (1, 1)))
        previous = kind
    shortest, longest = groups[0].end()
    return UNBOUNDED if longest >= UNBOUNDED else longest - shortest


class _Group:
    """The shortest and the longest match of the alternatives before, of the one at hand without its last part, and of
    that part: it may be repeated."""

    def __init__(self) -> None:
        self._before: tuple[int, int] | None = None
        self._shortest = self._longest = 0
        self._last = (0, 0)

    def add(self, shortest: int, longest: int) -> None:
        self._shortest += self._last[0]
        self._longest += self._last[1]
        self._last = shortest, longest

    def repeat(self, least: int, most: int) -> None:
        shortest, longest = self._last
        self._last = shortest * least, min(longest * most, UNBOUNDED)

    def alternative(self) -> None:
        self._before = self.end()
        self._shortest = self._longest = 0
        self._last = 0, 0

    def end(self) -> tuple[int, int]:
        self.add(0, 0)
        if self._before is None:
            return self._shortest, self._longest
        return min(self._before[0], self._shortest), max(self._before[1], self._longest)
