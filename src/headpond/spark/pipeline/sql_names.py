"""The tables that a SQL text reads from, as far as that can be told without Spark: names after FROM and JOIN.

    tables_of("SELECT * FROM clicks JOIN users USING (id)")   ->   [("clicks", 0), ("users", 0)]

Names of the text's own (WITH x AS ...), names with a dot (a catalog's tables, files), and functions are left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<string>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_QUERY_WORDS = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"}
_NO_TABLE = {"LATERAL", "VALUES", "SELECT", "UNNEST", "IDENTIFIER"}
_ENDS_LIST = {
    *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "UNION"),
    *("EXCEPT", "INTERSECT", "MINUS", "JOIN", "SELECT", "LATERAL", "PIVOT", "UNPIVOT", "QUALIFY"),
}


class _Token(NamedTuple):
    text: str
    upper: str
    is_name: bool
    line: int


class Named(NamedTuple):
    name: str
    line: int
    """Lines below the first."""


def tables_of(sql: str) -> list[Named]:
    tokens = _tokens(sql)
    own = _own_names(tokens)
    found: list[Named] = []
    has_select = [False]  # for each open parenthesis
    for at, token in enumerate(tokens):
        if token.text == "(":
            has_select.append(False)
        elif token.text == ")" and len(has_select) > 1:
            has_select.pop()
        elif token.upper in ("SELECT", "TABLE") and not token.is_name:
            has_select[-1] = True
        elif token.upper == "JOIN" or (token.upper == "FROM" and _begins_clause(tokens, at, has_select[-1])):
            has_select[-1] = True
            found += _references(tokens, at + 1)
    return [one for one in found if one.name.lower() not in own]


def command_of(sql: str) -> str | None:
    """The word that a text begins with, where no query begins so: ``INSERT``, ``SET``. None: it may be a query."""
    first = next((token for token in _tokens(sql) if token.text != "("), None)
    if first is None or first.is_name or not first.upper[:1].isalpha() or first.upper in _QUERY_WORDS:
        return None
    return first.upper


def _tokens(sql: str) -> list[_Token]:
    found: list[_Token] = []
    line = 0
    for match in _TOKEN.finditer(sql):
        text = match[0]
        kind = match.lastgroup
        if kind == "quoted":
            found.append(_Token(text[1:-1].replace("``", "`"), "", True, line))
        elif kind in ("word", "other"):
            found.append(_Token(text, text.upper(), False, line))
        elif kind == "string":
            found.append(_Token("''", "''", False, line))
        line += text.count("\n")
    return found


def _begins_clause(tokens: list[_Token], at: int, has_select: bool) -> bool:
    """Not the FROM of ``extract(year FROM day)`` or of ``IS DISTINCT FROM``."""
    before = [token.upper for token in tokens[max(0, at - 2) : at]]
    if before[-1:] == ["DISTINCT"] and before[0] in ("IS", "NOT"):
        return False
    return has_select or before[-1:] in ([], ["("])


def _own_names(tokens: list[_Token]) -> set[str]:
    """``x`` of ``WITH x AS (SELECT ...)`` and of ``, x (a, b) AS (SELECT ...)``."""
    found: set[str] = set()
    for at in range(len(tokens) - 2):
        if tokens[at].upper != "AS" or tokens[at + 1].text != "(" or tokens[at + 2].upper not in (*_QUERY_WORDS, "("):
            continue
        before = at - 1
        if before >= 0 and tokens[before].text == ")":
            while before > 0 and tokens[before].text != "(":
                before -= 1
            before -= 1
        if before >= 0:
            found.add(tokens[before].text.lower())
    return found


def _references(tokens: list[_Token], at: int) -> list[Named]:
    """The names of a list ``a, b AS c, d``, from its first token on."""
    found: list[Named] = []
    while at < len(tokens):
        reference = _reference(tokens, at)
        if reference is not None:
            found.append(reference)
        depth = 0
        while at < len(tokens):  # to the next comma of this list
            token = tokens[at]
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth < 0 or (depth == 0 and token.upper in _ENDS_LIST):
                return found
            at += 1
            if depth == 0 and token.text == ",":
                break
    return found


def _reference(tokens: list[_Token], at: int) -> Named | None:
    token = tokens[at]
    if token.upper in ("STREAM", "TABLE", "ONLY") and at + 1 < len(tokens) and tokens[at + 1].text not in ("(", ","):
        if not _is_word(tokens[at + 1]) or tokens[at + 1].upper in ("AS", *_ENDS_LIST):
            return None
        token, at = tokens[at + 1], at + 1
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if not _is_word(token) or token.upper in _NO_TABLE or after in (".", "("):
        return None
    return Named(token.text, token.line)


def _is_word(token: _Token) -> bool:
    return token.is_name or token.text[:1].isalpha() or token.text[:1] == "_"
