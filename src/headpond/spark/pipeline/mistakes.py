"""What is wrong with a declaration, and where: all of it at once, each in one sentence with file and line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def below(self, lines: int) -> Place:
        return self._replace(line=self.line + lines)


class Mistake(NamedTuple):
    place: Place
    sentence: str

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"


@dataclass(slots=True)
class Mistakes:
    found: list[Mistake] = field(default_factory=list)

    def add(self, place: Place, sentence: str) -> None:
        # A name may have anything in it, and a mistake is one line.
        mistake = Mistake(place, "".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence))
        if mistake not in self.found:
            self.found.append(mistake)

    def in_order(self) -> list[Mistake]:
        return sorted(self.found)


class WrongDeclaration(Exception):
    """A file that declares no pipeline; ``mistakes`` has all that was found, in the order of the lines."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes
