"""Java's properties files, as Kafka and its tools read them: ``name=value``, comments, continued lines, escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
_SPLIT = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.S)


class NotProperties(ValueError):
    """The message says what is wrong, to stand behind the file's name: "is ..."."""


def read_properties(data: bytes) -> dict[str, str]:
    """The settings in a file's bytes. UTF-8 where they are that, else ISO-8859-1, which is all that Java reads: in
    ASCII with its escapes the two are the same. Raises ``NotProperties``."""
    if b"\0" in data:
        raise NotProperties("not a text file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    """The last one counts where a name is there twice. Raises ``NotProperties``."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        name, value = _SPLIT.fullmatch(line).groups()  # type: ignore[union-attr]  # it matches every text
        found[_plain(name)] = _plain(value)
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Without comments; a line that ends with an odd number of backslashes goes on in the next one."""
    parts: list[str] = []
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not parts and (not line or line[0] in "#!"):
            continue
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2
        part = line[:-1] if is_continued else line
        if part:
            parts.append(part)
        if parts and not is_continued:
            yield "".join(parts)
            parts = []
    if parts:
        yield "".join(parts)


def _plain(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_replaced, text)
    try:
        # Characters beyond 16 bits are written as two escapes.
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise NotProperties("not a properties file: half of a pair of \\uXXXX escapes is missing") from None


def _replaced(found: re.Match[str]) -> str:
    what = found[1]
    if len(what) == 5:
        return chr(int(what[1:], 16))
    if what == "u":
        raise NotProperties("not a properties file: malformed \\uXXXX escape")
    return _ESCAPES.get(what, what)
