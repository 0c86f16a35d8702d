"""RE2's syntax, read as RE2/J reads it (that is what Kafka asks), down to its complaints.

No look-around and no back-references, which can't be matched in linear time. Greedy or not, captured or not: whether a
whole name matches does not depend on it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.coordination.groups.consumer.regex.classes import ESCAPED, POSIX, folded, unicode_class
from penstock.coordination.groups.consumer.regex.tree import (
    NOTHING,
    At,
    Chars,
    Either,
    InvalidRegex,
    Node,
    Place,
    Sequence,
    Texts,
    repeated,
)

REPEAT_MAX = 1_000
DEPTH_MAX = 100
"""Of groups in groups: the tree is walked by recursion."""

_COUNT = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_GROUP_NAME = re.compile(r"[0-9A-Za-z_]+")
_PLACES = {"A": Place.BEGIN, "z": Place.END, "b": Place.WORD_EDGE, "B": Place.NO_WORD_EDGE}
_FLAGS = {"i": "ignores_case", "m": "is_by_lines", "s": "dot_is_newline"}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse(text: str, texts: Texts) -> Node:
    """``texts``: what the expression is for. Raises ``InvalidRegex``."""
    return _Parser(text, texts).parse()


class _Flags(NamedTuple):
    ignores_case: bool = False
    is_by_lines: bool = False  # ^ and $ stand for the edges of lines too
    dot_is_newline: bool = False


class _Parser:
    def __init__(self, text: str, texts: Texts) -> None:
        self._text = text
        self._alphabet, self._length_max = texts
        self._at = 0
        self._flags = _Flags()
        self._names: set[str] = set()

    def parse(self) -> Node:
        node = self._alternatives(depth=0)
        if self._more:
            raise InvalidRegex("regexp/syntax: internal error")  # a parenthesis too many, as RE2/J puts it
        return node

    # --- the text

    @property
    def _more(self) -> bool:
        return self._at < len(self._text)

    def _looks_at(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self) -> str:
        char = self._text[self._at]
        self._at += 1
        return char

    # --- structure

    def _alternatives(self, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise InvalidRegex("expression nests too deeply")
        parts = [self._sequence(depth)]
        while self._looks_at("|"):
            self._at += 1
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        was_repeat = False
        while self._more and not self._looks_at("|") and not self._looks_at(")"):
            counts = self._repetition()
            if counts is None:
                was_repeat = False
                parts.extend(self._atom(depth))
                continue
            if not parts:
                raise InvalidRegex("missing argument to repetition operator")
            if was_repeat:
                raise InvalidRegex("invalid nested repetition operator")
            parts[-1] = repeated(parts[-1], *counts, self._length_max)
            was_repeat = True
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repetition(self) -> tuple[int, int | None] | None:
        found = _COUNT.match(self._text, self._at)
        counts: tuple[int, int | None]
        if found is not None:
            least = int(found[1])
            most = least if found[2] is None else None if found[3] is None else int(found[3])
            if least > REPEAT_MAX or (most is not None and (most > REPEAT_MAX or most < least)):
                raise InvalidRegex("invalid repeat count")
            counts = (least, most)
            self._at = found.end()
        elif self._more and self._text[self._at] in "*+?":
            counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self._take()]
        else:
            return None
        if self._looks_at("?"):  # not greedy
            self._at += 1
        return counts

    def _atom(self, depth: int) -> list[Node]:
        char = self._text[self._at]
        if char == "(":
            return [self._group(depth)]
        if char == "[":
            return [self._set()]
        if char == "\\":
            return self._escape()
        self._at += 1
        if char == ".":
            return [Chars(self._alphabet if self._flags.dot_is_newline else self._alphabet - {"\n"})]
        if char == "^":
            return [At(Place.LINE_BEGIN if self._flags.is_by_lines else Place.BEGIN)]
        if char == "$":
            return [At(Place.LINE_END if self._flags.is_by_lines else Place.END)]
        return [self._literal(char)]

    def _literal(self, char: str) -> Chars:
        return self._chars(frozenset(char))

    def _chars(self, chars: frozenset[str]) -> Chars:
        return Chars(self._in_any_case(chars))

    def _in_any_case(self, chars: frozenset[str]) -> frozenset[str]:
        """If that is asked for; as far as they are in the alphabet."""
        return folded(chars, self._alphabet) if self._flags.ignores_case else chars & self._alphabet

    # --- groups

    def _group(self, depth: int) -> Node:
        outside = self._flags
        if self._looks_at("(?P<") or self._looks_at("(?<"):
            self._group_name()
        elif self._looks_at("(?"):
            if not self._take_flags():
                return NOTHING  # from here on, to the end of the group around it
        else:
            self._at += 1
        node = self._alternatives(depth + 1)
        if not self._looks_at(")"):
            raise InvalidRegex("missing closing )")
        self._at += 1
        self._flags = outside
        return node

    def _group_name(self) -> None:
        start = self._text.index("<", self._at) + 1
        end = self._text.find(">", start)
        name = self._text[start:end]
        if end < 0 or not _GROUP_NAME.fullmatch(name):
            raise InvalidRegex("invalid named capture")
        if name in self._names:
            raise InvalidRegex("duplicate capture group name")
        self._names.add(name)
        self._at = end + 1

    def _take_flags(self) -> bool:
        """Whether a group follows them."""
        self._at += 2
        flags, is_negative, has_flag = self._flags, False, False
        while self._more:
            char = self._take()
            if char in _FLAGS or char == "U":  # U: what is greedy, which does not matter here
                has_flag = True
                flags = flags._replace(**{_FLAGS[char]: not is_negative}) if char in _FLAGS else flags
            elif char == "-" and not is_negative:
                is_negative, has_flag = True, False
            elif char in ":)" and (has_flag or not is_negative):
                self._flags = flags
                return char == ":"
            else:
                break
        raise InvalidRegex("invalid or unsupported Perl syntax")

    # --- escapes

    def _escape(self) -> list[Node]:
        following = self._text[self._at + 1 : self._at + 2]
        if following in _PLACES and following:
            self._at += 2
            return [At(_PLACES[following])]
        if following == "Q":
            return self._quoted()
        chars = self._escaped_class()
        if chars is not None:
            return [Chars(chars)]
        return [self._literal(self._escaped_char())]

    def _quoted(self) -> list[Node]:
        end = self._text.find(r"\E", self._at + 2)
        quoted = self._text[self._at + 2 :] if end < 0 else self._text[self._at + 2 : end]
        self._at = len(self._text) if end < 0 else end + 2
        return [self._literal(char) for char in quoted]

    def _escaped_class(self) -> frozenset[str] | None:
        """Of ``\\d``, ``\\pL``, ``\\p{^Greek}`` and the like; None: it is something else."""
        if not self._looks_at("\\") or self._at + 1 >= len(self._text):
            return None
        letter = self._text[self._at + 1]
        if letter.lower() in ESCAPED:
            self._at += 2
            chars = ESCAPED[letter.lower()]
            return chars & self._alphabet if letter.islower() else self._alphabet - chars
        if letter not in "pP" or self._at + 2 >= len(self._text):
            return None
        self._at += 2
        name = self._take()
        if name == "{":
            end = self._text.find("}", self._at)
            if end < 0:
                raise InvalidRegex("invalid character class range")
            name, self._at = self._text[self._at : end], end + 1
        is_negative = (letter == "P") != name.startswith("^")
        found = unicode_class(name.removeprefix("^"), self._alphabet)
        if found is None:
            raise InvalidRegex("invalid character class range")
        chars = self._in_any_case(found)
        return self._alphabet - chars if is_negative else chars

    def _escaped_char(self) -> str:
        self._at += 1
        if not self._more:
            raise InvalidRegex("trailing backslash at end of expression")
        char = self._take()
        if char in "01234567":
            return self._octal(char)
        if char == "x":
            return self._hexadecimal()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isascii() and char.isalnum():
            raise InvalidRegex("invalid escape sequence")
        return char

    def _octal(self, first: str) -> str:
        digits = re.compile("[0-7]{0,2}").match(self._text, self._at)
        following = digits[0] if digits is not None else ""
        if first != "0" and not following:  # a back-reference
            raise InvalidRegex("invalid escape sequence")
        self._at += len(following)
        return chr(int(first + following, 8))

    def _hexadecimal(self) -> str:
        found = re.compile(r"\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2})").match(self._text, self._at)
        value = -1 if found is None else int(found[1] or found[2], 16)
        if found is None or value > 0x10FFFF:
            raise InvalidRegex("invalid escape sequence")
        self._at = found.end()
        return chr(value)

    # --- sets

    def _set(self) -> Chars:
        self._at += 1
        is_negative = self._looks_at("^")
        self._at += is_negative
        chars: frozenset[str] = frozenset()
        is_first = True
        while is_first or not self._looks_at("]"):
            is_first = False
            named = self._posix_class()
            if named is None:
                named = self._escaped_class()
            chars |= self._range() if named is None else named
        self._at += 1
        chars = self._in_any_case(chars)
        return Chars(self._alphabet - chars if is_negative else chars)

    def _posix_class(self) -> frozenset[str] | None:
        if not self._looks_at("[:"):
            return None
        end = self._text.find(":]", self._at + 2)
        if end < 0:
            return None
        name = self._text[self._at + 2 : end]
        found = POSIX.get(name.removeprefix("^"))
        if found is None:
            raise InvalidRegex("invalid character class range")
        self._at = end + 2
        return self._alphabet - found if name.startswith("^") else found & self._alphabet

    def _range(self) -> frozenset[str]:
        low = high = self._set_char()
        if self._looks_at("-") and not self._looks_at("-]") and self._at + 1 < len(self._text):
            self._at += 1
            high = self._set_char()
            if high < low:
                raise InvalidRegex("invalid character class range")
        return frozenset(char for char in self._alphabet if low <= char <= high) | {low, high}

    def _set_char(self) -> str:
        if not self._more:
            raise InvalidRegex("missing closing ]")
        return self._escaped_char() if self._looks_at("\\") else self._take()
