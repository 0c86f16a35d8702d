"""A regular expression as a tree, reduced to what names of topics can consist of."""

from __future__ import annotations

import enum
import string
from typing import NamedTuple, TypeAlias

ALPHABET = frozenset(string.ascii_letters + string.digits + "._-")
"""What a name may consist of: everything else can be asked for, but never found."""
NAME_LENGTH_MAX = 249
WORD = frozenset(string.ascii_letters + string.digits + "_")


class InvalidRegex(ValueError):
    """RE2 would not take it; the message is RE2's."""


class Place(enum.Enum):
    BEGIN = "^"
    END = "$"
    WORD_EDGE = r"\b"
    NO_WORD_EDGE = r"\B"


class Chars(NamedTuple):
    """One character of these; none: what can't be found in a name."""

    chars: frozenset[str]


class At(NamedTuple):
    place: Place


class Sequence(NamedTuple):
    parts: tuple[Node, ...]


class Either(NamedTuple):
    parts: tuple[Node, ...]


class Repeat(NamedTuple):
    part: Node
    least: int
    most: int | None


Node: TypeAlias = Chars | At | Sequence | Either | Repeat

NOTHING = Sequence(())
NEVER = Chars(frozenset())


def length_min(node: Node) -> int:
    """Of what it matches; more than a name can have where it matches none."""
    if isinstance(node, Chars):
        return 1 if node.chars else NAME_LENGTH_MAX + 1
    if isinstance(node, Sequence):
        return sum(map(length_min, node.parts))
    if isinstance(node, Either):
        return min(map(length_min, node.parts))
    return length_min(node.part) * node.least if isinstance(node, Repeat) else 0


def repeated(part: Node, least: int, most: int | None) -> Node:
    """Counts beyond the length of a name are cut down to what makes no difference."""
    if least and length_min(part) * least > NAME_LENGTH_MAX:
        return NEVER
    if most is not None and most > NAME_LENGTH_MAX:
        most = None
    return Repeat(part, min(least, NAME_LENGTH_MAX), most)
