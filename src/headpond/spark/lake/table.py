"""A table that is replaced as a whole: a folder of Parquet files, written beside its place under a hidden name.

    parent/.NAME.table-new-<random>     being written
    parent/.NAME.table-old-<random>     the one before, for the moment between two renames
    parent/.NAME.table-lock             held by whoever writes: one would sweep away what another is writing, and
                                           Spark takes the files that are left for all

A crash between the two renames leaves no table but the old one, which the next run puts back first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from headpond.ports import FileSystem
from headpond.runtime.environment import absolute_path
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.random import SystemRandom
from headpond.spark.lake.errors import LakeError

MARK = "_SUCCESS"
"""What Spark leaves in a table that it has written to its end. A folder without it is nobody's to replace."""


class Table:
    def __init__(self, path: str, fs: FileSystem | None = None) -> None:
        if "://" in path:
            raise LakeError(f"{path}: a table is a folder (on a cluster: one that all nodes share), not an address")
        self.path = absolute_path(path)  # tasks may run elsewhere
        self._parent, _, self._name = self.path.rpartition("/")
        self._fs = fs or DiskFileSystem()

    def check(self, *, may_overwrite: bool) -> None:
        """``LakeError`` if it must not be written. Changes nothing."""
        if not self._fs.exists(self.path):
            return
        if not self._fs.exists(f"{self.path}/{MARK}"):
            raise LakeError(f"{self.path} exists and is no table: name another folder")
        if not may_overwrite:
            raise LakeError(f"{self.path} exists already: --overwrite replaces it")

    @contextlib.contextmanager
    def being_written(self) -> Iterator[str]:
        """The folder to write to; it becomes the table when the block ends well, and goes when it does not."""
        self._fs.make_dirs(self._parent)
        lock = self._fs.lock(f"{self._parent}/.{self._name}.table-lock")
        if lock is None:
            raise LakeError(f"{self.path} is being written by another process: wait for its end")
        with contextlib.closing(lock):
            self._clear_up()
            folder = self._beside("new")
            try:
                yield folder
                self._put_in_place(folder)
            finally:
                if self._fs.exists(folder):
                    self._fs.remove_tree(folder)

    def _put_in_place(self, folder: str) -> None:
        old = self._beside("old")
        has_old = self._fs.exists(self.path)
        if has_old:
            self._fs.rename(self.path, old)
        self._fs.rename(folder, self.path)
        self._fs.sync_dir(self._parent)
        if has_old:
            self._fs.remove_tree(old)

    def _clear_up(self) -> None:
        for name in self._fs.list_dir(self._parent):
            path = f"{self._parent}/{name}"
            if name.startswith(self._hidden("old")) and not self._fs.exists(self.path):
                self._fs.rename(path, self.path)
            elif name.startswith((self._hidden("old"), self._hidden("new"))):
                self._fs.remove_tree(path)

    def _beside(self, what: str) -> str:
        return f"{self._parent}/{self._hidden(what)}{SystemRandom().random_bytes(6).hex()}"

    def _hidden(self, what: str) -> str:
        return f".{self._name}.table-{what}-"
