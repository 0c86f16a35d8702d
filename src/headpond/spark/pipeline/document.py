"""A declaration's file as values and the lines that they stand on: TOML, YAML, or what a Python form has collected."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headpond.runtime.environment import read_file
from headpond.spark.pipeline.mistakes import Mistake, Place, WrongDeclaration
from headpond.spark.pipeline.toml_lines import Path, lines_of

_OPENS_TEXT = re.compile(r"(\"\"\"|'''|[|>][-+\d]*)\s*$")
NODES_MAX = 20_000
"""Values of a YAML document, those that aliases repeat counted each time: nine lines can stand for a billion."""
_TOO_DEEP = "it is nested too deeply"
_TEXT, _MERGED = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Document:
    file: str
    values: Mapping[str, Any]
    lines: Mapping[Path, int]
    text: str = ""

    def place(self, path: Path) -> Place:
        """Of that key, or of the nearest around it that is known."""
        while path and path not in self.lines:
            path = path[:-1]
        return Place(self.file, self.lines.get(path, 1))

    def place_of_text(self, path: Path) -> Place:
        """Of the first line of a text that goes over several: it may begin on the line below its key."""
        place = self.place(path)
        lines = self.text.split("\n")
        is_below = place.line <= len(lines) and _OPENS_TEXT.search(lines[place.line - 1]) is not None
        return place.below(1) if is_below else place


def read_text(file: str) -> str:
    try:
        return read_file(file).decode("utf-8")
    except OSError as error:
        raise WrongDeclaration([Mistake(Place(file, 1), f"can't be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise WrongDeclaration([Mistake(Place(file, line), "this is no text in UTF-8")]) from None


def read_toml(file: str) -> Document:
    text = read_text(file)
    try:
        values = tomllib.loads(text)
        text = text.replace("\r\n", "\n")
        return Document(file, values, lines_of(text), text)
    except RecursionError:
        raise WrongDeclaration([Mistake(Place(file, 1), f"this is no pipeline: {_TOO_DEEP}")]) from None
    except ValueError as error:
        told = str(error)
        found = _AT_LINE.search(told)
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        reason = _AT_LINE.sub("", told)
        raise WrongDeclaration([Mistake(Place(file, line), f"this is no TOML: {reason}")]) from None


def read_yaml(file: str) -> Document:
    try:
        import yaml
    except ImportError:
        sentence = "YAML needs the package pyyaml: pip install 'headpond[spark]'"
        raise WrongDeclaration([Mistake(Place(file, 1), sentence)]) from None

    text = read_text(file)
    try:
        walk = _YamlWalk(yaml, file, text)
        values = walk.values()
    except RecursionError:
        raise WrongDeclaration([Mistake(Place(file, 1), f"this is no pipeline: {_TOO_DEEP}")]) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = 1 if mark is None else mark.line + 1
        raise WrongDeclaration([Mistake(Place(file, line), f"this is no YAML: {problem}")]) from None
    if walk.wrong:
        raise WrongDeclaration(walk.wrong)
    if not isinstance(values, dict):
        raise WrongDeclaration(
            [Mistake(Place(file, 1), "there is no pipeline in this file: it needs name, source, sink")]
        )
    return Document(file, values, walk.lines, text)


class _YamlWalk:
    """Notes the line of every key, and what is wrong, before the values are made of the nodes."""

    def __init__(self, yaml: Any, file: str, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self.wrong: list[Mistake] = []
        self._yaml = yaml
        self._file = file
        self._nodes = 0
        self._loader = yaml.SafeLoader(text)

    def values(self) -> Any:
        """None: there are none, or something is wrong."""
        tree = self._loader.get_single_node()
        if tree is not None:
            self._walk(tree, (), ())
        return None if tree is None or self.wrong else self._loader.construct_document(tree)

    def _walk(self, node: Any, path: Path, around: tuple[Any, ...]) -> None:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            told = f"this is no pipeline: it has more than {NODES_MAX:,} values"
            raise WrongDeclaration([Mistake(self._place(node), told)])
        if any(node is outer for outer in around):
            self.wrong.append(Mistake(Place(self._file, self.lines[path]), f"{path[-1]} holds itself"))
        elif isinstance(node, self._yaml.MappingNode):
            self._walk_mapping(node, path, around)
        elif isinstance(node, self._yaml.SequenceNode):
            for number, value in enumerate(node.value):
                self.lines[(*path, str(number))] = value.start_mark.line + 1
                self._walk(value, (*path, str(number)), (*around, node))
        else:
            try:
                self._loader.construct_object(node)
            except ValueError as error:  # such as a date that is none
                self.wrong.append(Mistake(self._place(node), f"{node.value} can't be read: {error}"))

    def _walk_mapping(self, node: Any, path: Path, around: tuple[Any, ...]) -> None:
        for key, value in node.value:
            inner = (*path, str(key.value))
            if inner in self.lines:
                self.wrong.append(Mistake(self._place(key), f"{key.value} stands here twice"))
            self.lines[inner] = key.start_mark.line + 1
            if isinstance(key, self._yaml.ScalarNode) and key.tag != _MERGED:
                # A key is text, as it is written: 1 is no number here, and on is not true.
                key.tag = _TEXT
            self._walk(value, inner, (*around, node))

    def _place(self, node: Any) -> Place:
        return Place(self._file, node.start_mark.line + 1)
