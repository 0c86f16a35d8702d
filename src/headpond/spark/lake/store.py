"""A lake on disk: opened, locked, committed to, and made whole after a crash.

A commit    (1) tasks write files into the staging folder, and sync them; the driver syncs the folder. (2) The topic's
            state is replaced, atomically: now the records count as archived, and the state lists the renames that are
            still to do. (3) Each staged file is renamed to its place, where it is new, or replaces a smaller file whose
            records it holds as well.
A crash     before (2): staged files that no list names, removed by the next run, which archives the same records again.
            After (2): the renames are done by whoever opens the lake next. One that was done is not done again, for
            its staged file is gone.
A reader    that knows nothing of this (DuckDB, pandas, Spark, a shell) sees each file as it was or as it will be: never
            a part of one, never a record twice, never one gone that was there. Between (2) and the end of (3) it sees
            some of a commit's files: those records are not there *yet*.
One writer  at a time, by a lock that ends with its process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from headpond.model import invariant
from headpond.ports import Clock, FileSystem
from headpond.runtime.clock import SystemClock
from headpond.runtime.environment import absolute_path
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.random import SystemRandom
from headpond.spark.lake import layout
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.state import LakeMark, TopicState, read_mark, read_state

SETTLE_S_MAX = 10.0
"""For the renames of another process's commit: they take milliseconds."""


class Lake:
    """``path``: the folder, as the user wrote it."""

    def __init__(self, path: str, fs: FileSystem | None = None, clock: Clock | None = None) -> None:
        if "://" in path:
            raise LakeError(f"{path}: a lake is a folder (on a cluster: one that all nodes share), not an address")
        self.path = path.rstrip("/") or "/"
        self.absolute_path = absolute_path(self.path)
        """For tasks, which may run elsewhere."""
        self.fs = fs or DiskFileSystem()
        self._clock = clock or SystemClock()

    def at(self, inside: str) -> str:
        return f"{self.path}/{inside}"

    # --- the lake itself ----------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        return self.fs.exists(self.at(layout.LAKE_FILE))

    def mark(self) -> LakeMark:
        """``LakeError`` if this is no lake."""
        if not self.exists:
            what = "is no lake" if self.fs.exists(self.path) else "does not exist"
            raise LakeError(f"{self.path} {what}: `headpond pipeline archive --to {self.path}` makes one")
        path = self.at(layout.LAKE_FILE)
        return read_mark(self.fs.read_file(path), path)

    def create(self) -> LakeMark:
        """Make it, unless it is there. A folder that holds anything else is left alone."""
        if self.exists:
            return self.mark()
        if self.fs.exists(self.path):
            if not self.fs.is_dir(self.path):
                raise LakeError(f"{self.path} is a file: a lake is a folder")
            if others := [name for name in self.fs.list_dir(self.path) if name != layout.HIDDEN]:
                raise LakeError(
                    f"{self.path} is no lake, and holds {others[0]}: name a folder that is empty or not there"
                )
        self.fs.make_dirs(self.at(layout.STATES))
        mark = LakeMark(SystemRandom().random_bytes(12).hex())
        self.fs.write_file_atomically(self.at(layout.LAKE_FILE), mark.encode())
        return mark

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the one who writes, in a lake that is whole and has nothing staged."""
        self.create()
        lock = self.fs.lock(self.at(layout.LOCK_FILE))
        if lock is None:
            raise LakeError(f"{self.path} is being written by another process: wait for its end")
        try:
            for topic in self.topics():
                self._finish(self._read(topic))
            if self.fs.exists(self.at(layout.STAGING)):
                self.fs.remove_tree(self.at(layout.STAGING))
            yield
            if self.fs.exists(self.at(layout.STAGING)):
                self.fs.remove_tree(self.at(layout.STAGING))
        finally:
            lock.close()

    # --- topics -------------------------------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        folder = self.at(layout.STATES)
        names = self.fs.list_dir(folder) if self.fs.exists(folder) else []
        return [name.removesuffix(".json") for name in names if name.endswith(".json")]

    def state(self, topic: str) -> TopicState | None:
        """What is archived of a topic, all of it visible; None: nothing. For readers and the writer."""
        give_up_s = self._clock.monotonic() + SETTLE_S_MAX
        while True:
            state = self._read(topic) if self.fs.exists(self.at(layout.state_file(topic))) else None
            if state is None or not self._unfinished(state):
                return state
            lock = self.fs.lock(self.at(layout.LOCK_FILE))
            if lock is not None:
                with contextlib.closing(lock):
                    self._finish(self._read(topic))
            elif self._clock.monotonic() > give_up_s:
                raise LakeError(f"{self.path} is being written by another process: try again")

    def commit(self, state: TopicState) -> None:
        """The records of its files are in the lake when this returns; see above for when it does not."""
        before = self.at(layout.state_file(state.topic))
        known = self._read(state.topic).version if self.fs.exists(before) else 0
        invariant(state.version == known + 1, "a commit that does not follow the last one", state.topic, known)
        self._sync_staged(state)
        self.fs.write_file_atomically(before, state.encode())
        self._finish(state)

    def _sync_staged(self, state: TopicState) -> None:
        """The tasks have synced what is in the files; that there are such files is for us to sync, up to the lake."""
        folders: dict[str, None] = {}
        for move in state.moves:
            folder = move.staged
            while "/" in folder:
                folder = folder.rpartition("/")[0]
                folders[folder] = None
        for folder in folders:
            self.fs.sync_dir(self.at(folder))

    def _read(self, topic: str) -> TopicState:
        path = self.at(layout.state_file(topic))
        return read_state(self.fs.read_file(path), path)

    def _unfinished(self, state: TopicState) -> bool:
        return any(self.fs.exists(self.at(move.staged)) for move in state.moves)

    def _finish(self, state: TopicState) -> None:
        changed: dict[str, None] = {}
        for move in state.moves:
            staged, final = self.at(move.staged), self.at(move.final)
            if self.fs.exists(staged):
                folder = final.rpartition("/")[0]
                if not self.fs.exists(folder):
                    self.fs.make_dirs(folder)
                    changed[folder.rpartition("/")[0]] = None
                    changed[self.path] = None
                self.fs.rename(staged, final)
                changed[folder] = None
            elif not self.fs.exists(final):
                raise LakeError(f"{final} is missing, and the lake says that it is there: was something deleted?")
        for folder in changed:
            self.fs.sync_dir(folder)
