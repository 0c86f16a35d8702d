"""Java's properties files, as Kafka's tools read them: ``name=value``, comments, continued lines, escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
_SPLIT = re.compile(r"((?:[^\\=:\s]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.S)


def parse_properties(text: str) -> dict[str, str]:
    """The last one counts where a name is there twice."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        name, value = _SPLIT.fullmatch(line).groups()  # type: ignore[union-attr]  # it matches every text
        found[_plain(name)] = _plain(value)
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Without comments; a line that ends with an odd number of backslashes goes on in the next one."""
    pending: str | None = None
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        pending = None
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
        else:
            yield line
    if pending:
        yield pending


def _plain(text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        what = found[1]
        return chr(int(what[1:], 16)) if len(what) == 5 else _ESCAPES.get(what, what)

    return _ESCAPE.sub(replaced, text)
