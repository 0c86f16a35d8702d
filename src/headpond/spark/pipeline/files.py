"""The files that a declaration names, which lie beside it: schemas, SQL, functions."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from headpond.model.nearest import did_you_mean
from headpond.runtime.environment import absolute_path, read_file

if TYPE_CHECKING:
    from headpond.spark.pipeline.table import Table


def is_url(path: str) -> bool:
    """``hdfs://...``, ``s3a://...``: Spark's to find, not ours."""
    return "://" in path


class Files:
    def __init__(self, declaration: str) -> None:
        self._folder = PurePosixPath(declaration).parent

    def beside(self, path: str) -> str:
        """As people are told of it."""
        return path if is_url(path) else str(self._folder / path)

    def lasting(self, path: str) -> str:
        """The same from everywhere: Spark may run in another folder, and a pipeline be run from one and the other."""
        return path if is_url(path) else absolute_path(str(self._folder / path))

    def text(self, table: Table, key: str, path: str) -> str | None:
        """The file's text, or a mistake of that key."""
        try:
            return read_file(self.beside(path)).decode("utf-8")
        except OSError as error:
            table.wrong(key, f"{key} {path} can't be read: {error.strerror}")
        except UnicodeDecodeError:
            table.wrong(key, f"{key} {path} is no text in UTF-8")
        return None

    def check_function(self, table: Table, key: str, path: str, function: str) -> None:
        """Whether the file has that function; it is read, not run."""
        text = self.text(table, key, path)
        if text is None:
            return
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            table.wrong(key, f"{path} is no Python: {error.msg} in line {error.lineno}")
            return
        known = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        if function not in known:
            table.wrong(key, f"{path} has no function {function}{did_you_mean(function, known)}")
