"""A little help for writing Python source: lines, indentation, and the objects that the source refers to."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Source:
    """One function in the making. ``names`` is its global namespace, shared by the functions of one codec."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.lines: list[str] = []
        self._depth = 0

    def add(self, *lines: str) -> None:
        self.lines += ["    " * self._depth + line for line in lines]

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.add(opening)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        """A name that nothing else in this codec has."""
        number = self.names["#"] = self.names.get("#", 0) + 1  # no name that source code could use
        return f"{prefix}{number}"

    def refer(self, prefix: str, value: Any) -> str:
        """A name for an object, in the namespace of the compiled function."""
        for name, known in self.names.items():
            if known is value and name.startswith(prefix):
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def packer(self, formats: str, method: str) -> tuple[str, int]:
        """A name for the bound pack or unpack_from of that format, and its size."""
        name = f"{method}_{formats}".replace("?", "t")
        compiled = struct.Struct(">" + formats)
        self.names.setdefault(name, getattr(compiled, method))
        return name, compiled.size

    def literal(self, value: Any) -> str:
        """An expression equal to ``value``, which is not going to be changed."""
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return repr(value)
        return self.refer("default", value)
