"""What Kafka's RE2/J and the RE2 that we use read differently, settled before RE2 sees an expression.

One pass over the text. It refuses what RE2/J refuses and RE2 takes, writes the one escape that only RE2/J knows in
RE2's way, and adds up what the expression costs to compile: RE2 bounds the memory of the result, not that of the way
there. Everything else, unbalanced parentheses included, is left to RE2.
"""

from __future__ import annotations

import re

WEIGHT_MAX = 8_192
"""An expression of this weight takes some milliseconds and megabytes to compile. A character weighs 1."""
_UNICODE_CLASS_WEIGHT = 512
_WIDE_RANGE_WEIGHT = 32
_REPETITION_WEIGHT = 8
_OPTIONAL_WEIGHT = 4
REPEAT_MAX = 1_000

TOKEN = re.compile(
    r"""
      (?P<quoted> \\Q .*? (?: \\E | \Z ) )
    | (?P<unicode> \\[pP] (?: \{[^}]{0,64}\} | . ) )
    | (?P<escape> \\ (?: x\{[0-9A-Fa-f]{0,8}\} | x[0-9A-Fa-f]{2} | 0[0-7]{0,2} | [1-7][0-7]{1,2} | . ) )
    | (?P<set> \[ \^? \]? (?> \[:\^?[a-z]{1,8}:\] | \\. | [^\]\\] )*+ \] )
    | (?P<named> \( \? P? < (?P<name> [^>()]*+ ) >? )
    | (?P<flags> \( \? [a-zA-Z-]*+ \) )
    | (?P<open> \( (?: \? [a-zA-Z-]*+ : )? )
    | (?P<close> \) )
    | (?P<count> \{ (?P<least> 0 | [1-9][0-9]*+ ) (?P<more> , (?P<most> 0 | [1-9][0-9]*+ )? )? \} )
    | (?P<repeat> [*+?] )
    | (?P<brace> \{ )
    | (?P<plain> [^\\\[(){*+?]++ )
    | (?P<unclosed> \[ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COSTLY_IN_SET = re.compile(r"\\[pP]|-(?:\\x\{|[^\x00-\x7f])")
"""Ranges with an end beyond ASCII: folding their case takes long."""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NAME = re.compile(r"[0-9A-Za-z_]+")


class InvalidPattern(ValueError):
    """Kafka would not take it, or it is too large; the message is RE2/J's where it has one."""


def for_re2(text: str) -> str:
    """``text`` in RE2's words. Raises ``InvalidPattern``."""
    names: set[str] = set()
    weights, atom, previous = [0], 0, ""
    parts = []
    for token in TOKEN.finditer(text):
        kind, part = token.lastgroup or "", token[0]
        if kind in ("repeat", "count"):
            if previous == "brace":  # a literal one, to RE2; RE2/J takes it for a repetition of its own
                raise InvalidPattern("invalid nested repetition operator")
            least, most = _counts(token) if kind == "count" else (1, 1)
            grown = atom * most + _REPETITION_WEIGHT + _OPTIONAL_WEIGHT * (most - least)
            weights[-1] += grown - atom
            atom = grown
        elif kind == "open" or kind == "named":
            if kind == "named":
                if not part.endswith(">"):
                    raise InvalidPattern("invalid named capture")
                _check_name(token["name"], names)
            weights.append(1)
            atom = 0
        elif kind == "close" and len(weights) > 1:
            atom = weights.pop()
            weights[-1] += atom
        elif kind == "unclosed":
            raise InvalidPattern("missing closing ]")
        else:
            if kind == "escape" or kind == "set":
                part = _ESCAPE.sub(_escape, part)
            weight = _weight(kind, part)
            weights[-1] += weight
            atom = 1 if kind == "plain" else weight  # what follows repeats its last character
        if sum(weights[-2:]) > WEIGHT_MAX:
            raise InvalidPattern("expression too large")
        previous = kind
        parts.append(part)
    if sum(weights) > WEIGHT_MAX:
        raise InvalidPattern("expression too large")
    return "".join(parts)


def _counts(found: re.Match[str]) -> tuple[int, int]:
    """How often what is before it is written out: at least, and with what is optional."""
    numbers = [each for each in (found["least"], found["most"]) if each]
    if any(len(each) > 4 or int(each) > REPEAT_MAX for each in numbers):
        raise InvalidPattern("invalid repeat count")
    least, *more = map(int, numbers)
    return least, max(1, least, *more)


def _check_name(name: str, names: set[str]) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidPattern("invalid named capture")
    if name in names:
        raise InvalidPattern("duplicate capture group name")
    names.add(name)


def _escape(found: re.Match[str]) -> str:
    if found[1] == "C":
        raise InvalidPattern("invalid escape sequence")
    return found[0] if found[1].isascii() else found[1]


def _weight(kind: str, part: str) -> int:
    if kind == "unicode":
        return _UNICODE_CLASS_WEIGHT
    if kind == "set":
        return (
            1
            + len(part) // 8
            + sum(
                _WIDE_RANGE_WEIGHT if each[0] == "-" else _UNICODE_CLASS_WEIGHT for each in _COSTLY_IN_SET.findall(part)
            )
        )
    return len(part)
