"""One table of a declaration, read key by key: the right type or a mistake with its line, and nothing left over."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from headpond.model.nearest import did_you_mean
from headpond.spark.kafka.option_values import INT_MAX
from headpond.spark.pipeline.document import Document
from headpond.spark.pipeline.mistakes import Mistakes, Place
from headpond.spark.pipeline.toml_lines import Path

T = TypeVar("T", bound=str)

_DURATION = re.compile(r"(\d+)\s*(millisecond|second|minute|hour|day|ms|s|min|m|h|d)s?")
_SECONDS = {"ms": 0.001, "millisecond": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


class Table:
    """``what``: how its mistakes begin, such as ``source clicks: ``."""

    def __init__(
        self, document: Document, path: Path, values: Mapping[str, Any], mistakes: Mistakes, what: str
    ) -> None:
        self._document = document
        self._path = path
        self._values = values
        self._mistakes = mistakes
        self._what = what
        self._asked: list[str] = []

    @property
    def place(self) -> Place:
        return self._document.place(self._path)

    def place_of(self, key: str) -> Place:
        return self._document.place((*self._path, key))

    def place_of_text(self, key: str) -> Place:
        return self._document.place_of_text((*self._path, key))

    def wrong(self, key: str | None, sentence: str) -> None:
        self.wrong_at(self.place if key is None else self.place_of(key), sentence)

    def wrong_setting(self, key: str, name: str, sentence: str) -> None:
        """Of one of ``settings(key)``: its name may be quoted, or be as many tables as it has dots."""
        quoted, parted = (*self._path, key, name), (*self._path, key, *name.split("."))
        place = self._document.place(quoted if quoted in self._document.lines else parted)
        self.wrong_at(place, sentence)

    def wrong_at(self, place: Place, sentence: str) -> None:
        self._mistakes.add(place, f"{self._what}{sentence}")

    def has(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, *, is_needed: bool = False) -> str | None:
        value = self._value(key, is_needed=is_needed)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(key, f"{key} should be text in quotes, and is {_called(value)}")
            return None
        if not value.strip():
            self.wrong(key, f"{key} is empty")
            return None
        return value

    def choice(self, key: str, known: Sequence[T], default: T) -> T:
        value = self.text(key)
        if value is None:
            return default
        for one in known:
            if value == one:
                return one
        self.wrong(key, f"{key} is {value!r}, and should be one of {', '.join(known)}{did_you_mean(value, known)}")
        return default

    def truth(self, key: str, default: bool = False) -> bool:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(key, f"{key} should be true or false, and is {_called(value)}")
            return default
        return value

    def whole_number(self, key: str, *, at_least: int = 1) -> int | None:
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            self.wrong(key, f"{key} should be a whole number, {at_least} or more, and is {_called(value)}")
            return None
        if value > INT_MAX:
            self.wrong(key, f"{key} should be a whole number up to {INT_MAX}, and is {_called(value)}")
            return None
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """One text or a list of them."""
        value = self._value(key)
        if value is None:
            return ()
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not found or not all(isinstance(one, str) and one.strip() for one in found):
            self.wrong(key, f"{key} should be text, or a list of texts, and is {_called(value)}")
            return ()
        return tuple(found)

    def duration(self, key: str) -> str | None:
        """As Spark writes it: ``10 seconds``."""
        value = self.text(key)
        if value is not None and seconds_of(value) is None:
            self.wrong(key, f"{key} is {value!r}, and should be a time such as '10 seconds' or '5 minutes'")
            return None
        return value

    def settings(self, key: str) -> dict[str, str]:
        """A table of names and plain values, as text."""
        value = self._value(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong(key, f"{key} should be a table of names and values, and is {_called(value)}")
            return {}
        found: dict[str, str] = {}
        self._flatten((key,), value, found, "")
        return found

    def _flatten(self, path: Path, values: Mapping[str, Any], found: dict[str, str], before: str) -> None:
        """``sasl.mechanism = "PLAIN"`` without quotes around the name is two tables in TOML, and meant as one name."""
        for name, value in values.items():
            if isinstance(value, dict):
                self._flatten((*path, name), value, found, f"{before}{name}.")
            elif isinstance(value, bool):
                found[before + name] = "true" if value else "false"
            elif isinstance(value, str | int | float):
                found[before + name] = str(value)
            else:
                place = self._document.place((*self._path, *path, name))
                self._mistakes.add(place, f"{self._what}{before}{name} should be one value, and is {_called(value)}")

    def table(self, key: str, what: str | None = None) -> Table | None:
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.wrong(key, f"{key} should be a table, and is {_called(value)}")
            return None
        named = self._what if what is None else what
        return Table(self._document, (*self._path, key), value, self._mistakes, named)

    def tables(self, key: str) -> list[tuple[str, Table]]:
        """``[source.clicks]``, ``[source.orders]``: named tables, in their order."""
        outer = self.table(key, "")
        if outer is None:
            return []
        found = []
        for name in outer._values:
            inner = outer.table(name, f"{key} {name}: ")
            if inner is not None:
                found.append((name, inner))
        return found

    def raw(self, key: str) -> Any:
        return self._value(key)

    def end(self) -> None:
        """Whatever nobody has asked for is a mistake."""
        for name in self._values:
            if name not in self._asked:
                self.wrong(name, f"there is no key {name} here{did_you_mean(name, self._asked)}")

    def _value(self, key: str, *, is_needed: bool = False) -> Any:
        self._asked.append(key)
        if key not in self._values and is_needed:
            self.wrong(None, f"{key} is missing")
        return self._values.get(key)


def seconds_of(duration: str) -> float | None:
    found = _DURATION.fullmatch(duration.strip().lower())
    return None if found is None else int(found[1]) * (_SECONDS.get(found[2]) or _SECONDS[found[2][0]])


def _called(value: Any) -> str:
    names: dict[type, Callable[[Any], str]] = {
        bool: lambda one: "true" if one else "false",
        int: lambda one: f"the number {one}",
        float: lambda one: f"the number {one}",
        str: repr,
        list: lambda one: "a list" if one else "an empty list",
        dict: lambda _: "a table",
        type(None): lambda _: "nothing",
    }
    return names.get(type(value), lambda one: type(one).__name__)(value)
