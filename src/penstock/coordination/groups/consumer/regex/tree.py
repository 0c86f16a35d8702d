"""A regular expression as a tree, reduced to what the texts that it is for can consist of."""

from __future__ import annotations

import enum
import string
from typing import NamedTuple, TypeAlias


class Texts(NamedTuple):
    """What an expression is looked for in."""

    alphabet: frozenset[str]
    """What they consist of: everything else can be asked for, but never found."""
    length_max: int


TOPIC_NAMES = Texts(frozenset(string.ascii_letters + string.digits + "._-"), 249)
WORD = frozenset(string.ascii_letters + string.digits + "_")


class InvalidRegex(ValueError):
    """RE2 would not take it; the message is RE2's."""


class Place(enum.Enum):
    BEGIN = "^"
    END = "$"
    WORD_EDGE = r"\b"
    NO_WORD_EDGE = r"\B"
    LINE_BEGIN = "(?m)^"
    LINE_END = "(?m)$"


class Chars(NamedTuple):
    """One character of these; none: what can't be found."""

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


def length_min(node: Node, length_max: int) -> int:
    """Of what it matches; more than ``length_max`` where it matches nothing."""
    if isinstance(node, Chars):
        return 1 if node.chars else length_max + 1
    if isinstance(node, Sequence):
        return sum(length_min(part, length_max) for part in node.parts)
    if isinstance(node, Either):
        return min(length_min(part, length_max) for part in node.parts)
    return length_min(node.part, length_max) * node.least if isinstance(node, Repeat) else 0


def repeated(part: Node, least: int, most: int | None, length_max: int) -> Node:
    """Counts beyond the length of the texts are cut down to what makes no difference."""
    if least and length_min(part, length_max) * least > length_max:
        return NEVER
    if most is not None and most > length_max:
        most = None
    return Repeat(part, min(least, length_max), most)
