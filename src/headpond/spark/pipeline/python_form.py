"""The Python form: the same keys as in TOML, as arguments; and functions as steps.

    from headpond.spark.pipeline import Pipeline

    pipeline = Pipeline("sessions", trigger="10 seconds")
    pipeline.source("clicks", topic="clicks", format="json", schema="user STRING, at TIMESTAMP")

    @pipeline.step
    def counts(clicks):                       # a parameter is a source or step of that name, ``spark`` is the session
        return clicks.groupBy("user").count()

    pipeline.sink("out", from_="counts", topic="counts", key="user", mode="update")

The file is run to be read: it should declare, and do nothing else.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from headpond.spark.pipeline.document import Document, read_text
from headpond.spark.pipeline.mistakes import Mistake, Place, WrongDeclaration
from headpond.spark.pipeline.toml_lines import Path

F = TypeVar("F", bound=Callable[..., Any])


class Pipeline:
    """Collects a declaration. ``folder``, ``trigger``, ``refresh``, ``broker``, ``bad_records``, ``spark`` are what
    they are in TOML."""

    def __init__(self, name: str, **keys: Any) -> None:
        self._values: dict[str, Any] = {"name": name, **{key: _plain(value) for key, value in keys.items()}}
        self._lines: dict[Path, int] = {}
        self._twice: list[tuple[int, str]] = []
        self._note((), _caller_line())

    def source(self, name: str, **keys: Any) -> None:
        self._add("source", name, keys, _caller_line())

    def sink(self, name: str, **keys: Any) -> None:
        self._add("sink", name, keys, _caller_line())

    def sql(self, name: str, sql: str, **keys: Any) -> None:
        """A step in SQL."""
        self._add("step", name, {"sql": sql, **keys}, _caller_line())

    def step(self, function: F | None = None, **keys: Any) -> Any:
        """``@pipeline.step`` or ``@pipeline.step(watermark=...)``: a function that takes and gives a DataFrame."""
        line = _caller_line()

        def add(one: F) -> F:
            self._add("step", one.__name__, {"python": one, **keys}, one.__code__.co_firstlineno or line)
            return one

        return add if function is None else add(function)

    def document(self, file: str) -> Document:
        if self._twice:
            raise WrongDeclaration([Mistake(Place(file, line), sentence) for line, sentence in self._twice])
        return Document(file, self._values, self._lines)

    def _add(self, kind: str, name: str, keys: dict[str, Any], line: int) -> None:
        name = str(name)
        tables = self._values.setdefault(kind, {})
        if name in tables:
            self._twice.append((line, f"{kind} {name} is declared twice"))
        tables[name] = {key.removesuffix("_"): _plain(value) for key, value in keys.items()}
        self._note((kind, name), line)

    def _note(self, path: Path, line: int) -> None:
        self._lines.setdefault(path, line)


def _plain(value: Any) -> Any:
    """As a file would have it: lists, and keys that are text, such as the ids of ``writer_schemas``."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _caller_line() -> int:
    return sys._getframe(2).f_lineno


def read_python(file: str) -> Document:
    """Runs the file, and gives what it has declared as ``pipeline``."""
    read_text(file)
    try:
        names = runpy.run_path(file, run_name="headpond_pipeline")
    except WrongDeclaration:
        raise
    except Exception as error:
        line = _line_in(file, error)
        raise WrongDeclaration([Mistake(Place(file, line), f"{type(error).__name__}: {error}")]) from None
    found = names.get("pipeline")
    if not isinstance(found, Pipeline):
        sentence = "this file has no `pipeline`: it should say pipeline = Pipeline(NAME)"
        raise WrongDeclaration([Mistake(Place(file, 1), sentence)])
    return found.document(file)


def _line_in(file: str, error: BaseException) -> int:
    """The line of the file that led to the error."""
    if isinstance(error, SyntaxError):
        return error.lineno or 1
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
