"""On which line of a TOML document each key stands. The standard library's parser does not tell.

    lines_of('[source.clicks]\\ntopic = "clicks"')   ->   {("source",): 1, ("source", "clicks"): 1,
                                                           ("source", "clicks", "topic"): 2}

Takes only what ``tomllib`` has taken before: it looks for where things end and trusts that they are well made.
"""

from __future__ import annotations

Path = tuple[str, ...]

_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "e": "\x1b"}


def lines_of(text: str) -> dict[Path, int]:
    """Paths to their lines. Tables in arrays carry their number: ``("step", "0", "sql")``."""
    return _Scan(text).document()


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}

    def document(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip_space(with_lines=True):
            if self._peek() == "[":
                table = self._header()
            else:
                self._entry(table)
        return self._lines

    def _header(self) -> Path:
        line = self._line()
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        path = self._inside(self._key())
        if is_array:
            number = self._counts[path] = self._counts.get(path, -1) + 1
            self._note((), path, line)
            path = (*path, str(number))
        self._note((), path, line)
        self._at = self._text.index("]", self._at) + (2 if is_array else 1)
        return path

    def _inside(self, path: Path) -> Path:
        """``[[a]]`` then ``[a.b]``: the b of the last a."""
        found: Path = ()
        for part in path[:-1]:
            found = (*found, part)
            if found in self._counts:
                found = (*found, str(self._counts[found]))
        return (*found, path[-1])

    def _entry(self, table: Path) -> None:
        line = self._line()
        path = (*table, *self._key())
        self._note(table, path, line)
        self._at = self._text.index("=", self._at) + 1
        self._value(path)

    def _note(self, table: Path, path: Path, line: int) -> None:
        for length in range(len(table) + 1, len(path) + 1):
            self._lines.setdefault(path[:length], line)

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip_space()
            parts.append(self._string() if self._peek() in "\"'" else self._bare())
            self._skip_space()
            if self._peek() != ".":
                return tuple(parts)
            self._at += 1

    def _bare(self) -> str:
        begin = self._at
        while self._peek() not in " \t.=]":
            self._at += 1
        return self._text[begin : self._at]

    def _value(self, path: Path) -> None:
        self._skip_space()
        if self._peek() in "\"'":
            self._string()
        elif self._peek() == "[":
            self._array(path)
        elif self._peek() == "{":
            self._inline_table(path)
        else:
            while self._peek() not in ",]}#\n" and self._peek():
                self._at += 1

    def _array(self, path: Path) -> None:
        self._at += 1
        number = 0
        while self._skip_space(with_lines=True) and self._peek() != "]":
            self._lines.setdefault((*path, str(number)), self._line())
            self._value((*path, str(number)))
            number += 1
            if self._skip_space(with_lines=True) and self._peek() == ",":
                self._at += 1
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while self._skip_space(with_lines=True) and self._peek() != "}":
            self._entry(path)
            if self._skip_space(with_lines=True) and self._peek() == ",":
                self._at += 1
        self._at += 1

    def _string(self) -> str:
        quote = self._peek()
        if self._text.startswith(quote * 3, self._at):
            return self._long_string(quote * 3)
        self._at += 1
        found: list[str] = []
        while self._peek() != quote:
            if self._peek() == "\\" and quote == '"':
                self._at += 1
                found.append(_ESCAPES.get(self._peek(), self._peek()))
            else:
                found.append(self._peek())
            self._at += 1
        self._at += 1
        return "".join(found)

    def _long_string(self, quotes: str) -> str:
        begin = self._at = self._at + 3
        while not self._text.startswith(quotes, self._at):
            self._at += 2 if quotes[0] == '"' and self._peek() == "\\" else 1
        found = self._text[begin : self._at]
        self._at += 3
        while self._peek() == quotes[0]:  # up to two quotes may stand before the closing three
            self._at += 1
        return found

    def _skip_space(self, *, with_lines: bool = False) -> bool:
        """Whether there is something left."""
        spaces = " \t\r\n" if with_lines else " \t"
        while self._at < len(self._text):
            if with_lines and self._peek() == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif self._peek() in spaces:
                self._at += 1
            else:
                return True
        return False

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1
