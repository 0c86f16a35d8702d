"""A schema in Spark's notation, read without Spark: ``user STRING NOT NULL, at TIMESTAMP, tags ARRAY<STRING>``.

``fields_of`` gives the fields of the top level, or raises ``WrongSchema`` with what is wrong and on which line of the
text. It is no stricter than Spark, and need not know every corner: Spark has the last word.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from headpond.model.nearest import did_you_mean

_SIMPLE = (
    *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double"),
    *("date", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "binary", "decimal", "dec", "numeric", "void"),
    *("variant", "time", "interval"),
)
_WITH_NUMBERS = ("decimal", "dec", "numeric", "char", "character", "varchar", "time", "timestamp_ntz", "timestamp_ltz")
_NESTED = ("array", "map", "struct")
_KNOWN = (*_SIMPLE, *_WITH_NUMBERS, *_NESTED)
_INTERVAL = {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "TO"}
_TOKEN = re.compile(r"(\s+|--[^\n]*)|(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|(.)", re.DOTALL)


class WrongSchema(ValueError):
    def __init__(self, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.line = line


class Field(NamedTuple):
    name: str
    type: str
    is_needed: bool
    """NOT NULL."""


class _Token(NamedTuple):
    text: str
    kind: str
    line: int


def fields_of(text: str) -> list[Field]:
    reader = _Reader(text)
    fields = reader.fields(until="")
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise WrongSchema(f"the schema has {field.name} twice", 0)
        seen.add(field.name.lower())
    if not fields:
        raise WrongSchema("the schema is empty", 0)
    return fields


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[_Token] = []
        line = 0
        for match in _TOKEN.finditer(text):
            kind = ("", "space", "quoted", "string", "word", "other")[match.lastindex or 0]
            if kind != "space":
                self._tokens.append(_Token(match[0], kind, line))
            line += match[0].count("\n")
        self._end = _Token("", "end", line)
        self._at = 0

    def fields(self, until: str) -> list[Field]:
        found: list[Field] = []
        while self._peek().text != until:
            found.append(self._field())
            if self._peek().text != ",":
                break
            self._next()
        if self._peek().text != until:
            token = self._peek()
            raise WrongSchema(f"the schema can't be read at {token.text or 'its end'!r}{_expected(until)}", token.line)
        return found

    def _field(self) -> Field:
        token = self._next()
        if token.kind not in ("word", "quoted"):
            raise WrongSchema(f"the schema should have the name of a column where it has {token.text!r}", token.line)
        name = token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
        if self._peek().text == ":":
            self._next()
        kind = self._type(name)
        is_needed = False
        while self._peek().text.upper() in ("NOT", "COMMENT"):
            if self._next().text.upper() == "NOT":
                is_needed = True
            self._next()  # NULL, or the comment
        return Field(name, kind, is_needed)

    def _type(self, name: str) -> str:
        token = self._next()
        kind = token.text.lower()
        if token.kind != "word":
            raise WrongSchema(f"the type of {name} is missing", token.line)
        if kind not in _KNOWN:
            raise WrongSchema(f"{token.text} is no type for {name}{did_you_mean(kind, _KNOWN)}", token.line)
        if kind in _NESTED:
            return f"{kind}<{self._inner(kind, name)}>"
        if kind == "interval":
            while self._peek().text.upper() in _INTERVAL:
                self._next()
        if self._peek().text == "(" and kind in _WITH_NUMBERS:
            numbers = ""
            while (token := self._next()).text != ")":
                if token.kind == "end":
                    raise WrongSchema(f"the type of {name} lacks its )", token.line)
                numbers += token.text
            return f"{kind}{numbers})"
        return kind

    def _inner(self, kind: str, name: str) -> str:
        self._expect("<", name)
        if kind == "struct":
            inner = ",".join(f"{one.name}:{one.type}" for one in self.fields(until=">"))
        else:
            inner = self._type(name)
            if kind == "map":
                self._expect(",", name)
                inner += f",{self._type(name)}"
        self._expect(">", name)
        return inner

    def _expect(self, text: str, name: str) -> None:
        token = self._next()
        if token.text != text:
            raise WrongSchema(
                f"the type of {name} should have {text} where it has {token.text or 'its end'!r}", token.line
            )

    def _peek(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else self._end

    def _next(self) -> _Token:
        token = self._peek()
        self._at += 1
        return token


def _expected(until: str) -> str:
    return f": , or {until} should come" if until else ": a comma should come between columns"
