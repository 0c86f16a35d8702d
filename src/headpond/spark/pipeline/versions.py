"""The versions of a table with upsert, and the link that leads to the one that counts.

    TABLE/current           leads to the newest whole version: what readers read, TABLE/current/*.parquet
    TABLE/<id>-<batch>/     the versions; the one before the newest stays for readers that have begun

Whose       A table belongs to the pipeline whose folder has the id. Only versions of that id are ever removed; a
            folder that holds anything else is refused. (Names that begin with a dot are left alone: file systems and
            desktops put such files anywhere.)
Durable     A version's files, its folder and the table's folder are synced before the link is switched to it, and the
            table's folder again after that: what a link leads to is whole, also after a power cut.
A crash     before the switch leaves a version that nothing leads to; the batch comes again and makes it anew.
"""

from __future__ import annotations

from headpond.ports import FileSystem
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.links import link_target, switch_link
from headpond.spark.pipeline.failures import WrongFolder
from headpond.spark.pipeline.places import CURRENT, VERSION


class Versions:
    """``identity``: of the pipeline's folder; None: it has none yet, so that no version can be its own."""

    def __init__(self, folder: str, identity: str | None, fs: FileSystem | None = None) -> None:
        self._folder = folder
        self._identity = identity
        self._fs = DiskFileSystem() if fs is None else fs

    def name(self, batch_id: int) -> str:
        return f"{self._identity}-{batch_id:08d}"

    def path(self, version: str) -> str:
        return f"{self._folder}/{version}"

    def current(self) -> str | None:
        return link_target(f"{self._folder}/{CURRENT}")

    def written(self) -> int:
        """The batch of the current version; -1: there is none."""
        found = VERSION.fullmatch(self.current() or "")
        return int(found[2]) if found is not None and found[1] == self._identity else -1

    def check(self, what: str) -> None:
        """``WrongFolder`` where the folder holds what is not of this table."""
        if not self._fs.exists(self._folder):
            return
        if not self._fs.is_dir(self._folder):
            raise WrongFolder(f"{what}{self._folder} is a file, and a table is a folder")
        current = self.current()
        if current is not None and not self._is_mine(current):
            raise WrongFolder(
                f"{what}{self._folder} was written by another query: give the sink another folder, or remove that one"
            )
        for name in self._fs.list_dir(self._folder):
            is_link = name in (CURRENT, f"{CURRENT}.new") and link_target(f"{self._folder}/{name}") is not None
            if not (is_link or self._is_mine(name) or name.startswith(".")):
                raise WrongFolder(
                    f"{what}{self._folder} holds {name!r}, which is not of this table: give the sink another folder"
                )

    def switch(self, version: str) -> None:
        """From now on readers read this one, whatever happens to the machine."""
        self._sync(f"{self._folder}/{version}")
        self._fs.sync_dir(self._folder)
        switch_link(f"{self._folder}/{CURRENT}", version)
        self._fs.sync_dir(self._folder)

    def remove_but(self, kept: set[str]) -> None:
        for name in self._fs.list_dir(self._folder):
            path = f"{self._folder}/{name}"
            if self._is_mine(name) and name not in kept and link_target(path) is None:
                self._fs.remove_tree(path)

    def _is_mine(self, name: str) -> bool:
        found = VERSION.fullmatch(name)
        return found is not None and found[1] == self._identity

    def _sync(self, folder: str) -> None:
        for name in self._fs.list_dir(folder):
            path = f"{folder}/{name}"
            if self._fs.is_dir(path):
                self._sync(path)
                continue
            file = self._fs.open(path, writable=False)
            try:
                file.sync()
            finally:
                file.close()
        self._fs.sync_dir(folder)
