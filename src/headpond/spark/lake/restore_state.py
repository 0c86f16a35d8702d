"""How far a restore is: one JSON file for each topic that is written to, replaced as a whole.

A chunk is written down before it is begun (``chunk_ends``), and again when it is done. What a crash leaves is either
no chunk, or one that may or may not have been written: it is written again under the same number, and the sink knows
by that number whether it was (``txnVersion``). What a chunk holds is decided by its offsets alone, so that a lake that
has grown in between changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from headpond.ports import FileSystem
from headpond.runtime.random import SystemRandom
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.state import TopicState
from headpond.spark.reading.planning import limit_in_proportion


class RestoreState(msgspec.Struct, frozen=True):
    lake_id: str
    topic: str
    """In the lake."""
    target: str
    target_id: str
    """Of the topic that is written to: one that was made anew is another one."""
    app_id: str
    """``txnAppId``."""
    chunk: int = 0
    """``txnVersion`` of the next chunk, or of the one under way."""
    positions: dict[int, int] = {}
    """By partition, in the lake's offsets: everything before it is written."""
    chunk_ends: dict[int, int] | None = None
    """Where the chunk under way ends; None: there is none."""
    records: int = 0


def new_restore(lake_id: str, topic: str, target: str, target_id: str) -> RestoreState:
    return RestoreState(lake_id, topic, target, target_id, f"restore-{SystemRandom().random_bytes(8).hex()}")


def with_next_chunk(restore: RestoreState, lake: TopicState, records_max: int) -> RestoreState | None:
    """Ready to write its next chunk; None when everything in the lake is written."""
    if restore.chunk_ends is not None:
        return restore
    starts = starts_of(restore, lake)
    ends = {partition: reach.next_offset for partition, reach in lake.partitions.items()}
    if not any(ends[partition] > start for partition, start in starts.items()):
        return None
    chunk_ends = _limited(starts, ends, records_max)
    return msgspec.structs.replace(restore, chunk_ends=chunk_ends)


def _limited(starts: Mapping[int, int], ends: Mapping[int, int], records_max: int) -> dict[int, int]:
    # The arithmetic does not care what the keys are.
    return limit_in_proportion(starts, ends, records_max)  # type: ignore[arg-type, return-value]


def starts_of(restore: RestoreState, lake: TopicState) -> dict[int, int]:
    return {
        partition: restore.positions.get(partition, reach.first_offset)
        for partition, reach in sorted(lake.partitions.items())
    }


def with_chunk_done(restore: RestoreState, records: int) -> RestoreState:
    assert restore.chunk_ends is not None
    return msgspec.structs.replace(
        restore,
        chunk=restore.chunk + 1,
        positions={**restore.positions, **restore.chunk_ends},
        chunk_ends=None,
        records=restore.records + records,
    )


class RestoreFile:
    """Where the state of one restore lies, and what is staged for it; held by one process at a time."""

    def __init__(
        self, folder: str, staging_folder: str, cluster_id: str, topic: str, target: str, fs: FileSystem
    ) -> None:
        name = hashlib.sha256("\0".join((cluster_id, topic, target)).encode()).hexdigest()[:24]
        self._folder = folder
        self._path = f"{folder}/{name}.json"
        self.staging = f"{staging_folder}/{name}"
        """A folder of this restore's own, which tasks write to: all nodes have to see it."""
        self._fs = fs

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        try:
            self._fs.make_dirs(self._folder)
            lock = self._fs.lock(f"{self._path}.lock")
        except OSError as error:
            raise LakeError(
                f"{self._folder} can't be written ({error.strerror}): name another folder with --state"
            ) from error
        if lock is None:
            raise LakeError("this restore is being done by another process: wait for its end")
        with contextlib.closing(lock):
            self._clear_staging()  # of a run that was killed: whatever it had staged is staged again
            try:
                yield
            finally:
                self._clear_staging()

    def _clear_staging(self) -> None:
        if self._fs.exists(self.staging):
            self._fs.remove_tree(self.staging)

    def read(self) -> RestoreState | None:
        if not self._fs.exists(self._path):
            return None
        try:
            return msgspec.json.decode(self._fs.read_file(self._path), type=RestoreState)
        except msgspec.DecodeError as error:
            raise LakeError(f"{self._path} is damaged: {error}") from error

    def write(self, state: RestoreState) -> None:
        self._fs.write_file_atomically(self._path, msgspec.json.encode(state))
