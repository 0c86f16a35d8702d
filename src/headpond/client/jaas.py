"""``sasl.jaas.config``, as Kafka's clients take it: one login module, a flag, options, a semicolon.

module, options = parse_jaas('org.apache.kafka...PlainLoginModule required username="alice" password="...";')

Raises ``ValueError`` with a sentence that never shows the text: there is a password in it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

FLAGS = ("required", "requisite", "sufficient", "optional")

_TOKEN = re.compile(
    r"""\s*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<sign>[=;])|(?P<word>[^\s=;"']+))""", re.S
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class Jaas(NamedTuple):
    module: str
    """The name of the class, without its package."""
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"Jaas({self.module})"


def parse_jaas(text: str) -> Jaas:
    tokens = _tokens(text.strip())
    if len(tokens) < 3 or tokens[0].is_sign or tokens[1].is_sign:
        raise ValueError("is not a login module, 'required', options and a semicolon")
    if tokens[1].text.lower() not in FLAGS:
        raise ValueError(f"has no {' or '.join(FLAGS)} behind the login module")
    if tokens[-1] != _Token(";", True):
        raise ValueError("does not end with a semicolon")
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    while rest:
        if rest[0] == _Token(";", True):
            raise ValueError("has more than one login module, and a client has one")
        if len(rest) < 3 or rest[0].is_sign or rest[1] != _Token("=", True) or rest[2].is_sign:
            raise ValueError('has an option that is not name="value": a value with other signs needs quotes')
        options[rest[0].text] = rest[2].text
        rest = rest[3:]
    return Jaas(tokens[0].text.rpartition(".")[2], options)


class _Token(NamedTuple):
    text: str
    is_sign: bool


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError("has a quote that is never closed")
        quoted = found["double"] if found["double"] is not None else found["single"]
        if quoted is not None:
            tokens.append(_Token(_ESCAPE.sub(_unescaped, quoted), False))
        else:
            tokens.append(_Token(found["sign"] or found["word"], found["sign"] is not None))
        position = found.end()
    return tokens


def _unescaped(found: re.Match[str]) -> str:
    what = found[1]
    return chr(int(what, 8)) if what.isdigit() and what < "8" else _ESCAPES.get(what, what)
