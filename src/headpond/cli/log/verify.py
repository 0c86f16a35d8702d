"""Verifies segments, partitions and whole data folders: every file by itself, and all of them against each other.

segment     batches (size, CRC, offsets, on demand records); index entries that point to batches
partition   segments that follow one another without overlap; batches in the leader epochs of the checkpoint; aborted
            transactions that are in the transaction indexes
data folder recovery points, log starts, high watermarks and clean ends within the logs that are there

A folder may be in use: small files are read before the segments that they speak of, so what a broker appends meanwhile
is no fault; a file that it removes meanwhile is passed over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from headpond.cli.common.failures import in_words
from headpond.cli.log.aborts import EVERYTHING, AbortedCheck
from headpond.cli.log.batches import Rest, walk
from headpond.cli.log.files import BATCHES, Kind, items, kind_of
from headpond.cli.log.indexes import IndexCheck, OffsetEntry, TimeEntry, offset_entries, time_entries, txn_entries
from headpond.model import TopicPartition
from headpond.ports import FileSystem
from headpond.storage.folder import names
from headpond.storage.folder.checkpoint_files import CorruptCheckpoint, decode_lines, decode_offsets
from headpond.storage.producers.txn_index import AbortedTxn

FAULTS_PER_FILE_MAX = 20
"""A file full of garbage is told by its first faults; the rest is counted."""


class Fault(NamedTuple):
    path: str
    what: str


@dataclass(slots=True)
class Report:
    partitions: int = 0
    files: int = 0
    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    faults: list[Fault] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "faults": [fault._asdict() for fault in self.faults]}


class Verifier:
    def __init__(self, fs: FileSystem, *, with_records: bool, advance: Callable[[int], None] = lambda _: None) -> None:
        self._fs = fs
        self._with_records = with_records
        self._advance = advance
        self.report = Report()

    def file(self, path: str) -> None:
        kind = kind_of(_name(path))
        assert kind is not None, "the caller looked"
        if kind.suffix == BATCHES:
            self._segment(path, kind, Epochs([]))
        else:
            self._small_file(path, kind)

    def partition(self, path: str) -> int:
        """A partition's folder, wherever it lies. Returns the log's end offset."""
        recovery_points = f"{_parent(path)}/{names.RECOVERY_POINTS}"
        points = self._offsets(recovery_points) if self._fs.exists(recovery_points) else None
        return self._partition(path, points)

    def _partition(self, path: str, recovery_points: Mapping[TopicPartition, int] | None) -> int:
        self.report.partitions += 1
        present = self._fs.list_dir(path)
        epochs = self._epochs(path, present)
        tp = names.parse_folder_name(_name(path))
        promised = EVERYTHING if recovery_points is None else recovery_points.get(tp, 0) if tp is not None else 0
        aborts = AbortedCheck(promised)  # of a folder that was set aside nothing is promised
        end_offset = -1
        for name in present:
            kind = kind_of(name)
            if kind is None or kind.suffix in (names.INDEX, names.TIME_INDEX):
                continue  # indexes are verified with their segment
            if kind.suffix != BATCHES:
                self._small_file(f"{path}/{name}", kind)
            elif name.endswith(names.LOG):
                if kind.base_offset < end_offset:
                    self._fault(f"{path}/{name}", f"it begins before the segment in front of it ends ({end_offset})")
                end_offset = max(end_offset, self._segment(f"{path}/{name}", kind, epochs, aborts))
            else:
                self._segment(f"{path}/{name}", kind, Epochs([]))
        for name in present:
            if name.endswith((names.INDEX, names.TIME_INDEX)):
                segment = name.removesuffix(names.INDEX).removesuffix(names.TIME_INDEX) + names.LOG
                if segment not in present:
                    self._fault(f"{path}/{name}", "an index without a segment")
        return max(end_offset, 0)

    def data_folder(self, path: str) -> None:
        present = self._fs.list_dir(path)
        checkpoints = {name: self._offsets(f"{path}/{name}") for name in _OFFSET_FILES if name in present}
        for name in present:
            kind = kind_of(name)
            if kind is not None and not self._fs.is_dir(f"{path}/{name}"):
                self._small_file(f"{path}/{name}", kind)
        end_offsets: dict[TopicPartition, int] = {}
        for name in partition_folders(self._fs, path):
            end_offset = self._partition(f"{path}/{name}", checkpoints.get(names.RECOVERY_POINTS))
            tp = names.parse_folder_name(name)
            if tp is not None:
                end_offsets[tp] = end_offset
        for name, offsets in checkpoints.items():
            for tp, offset in offsets.items():
                if tp in end_offsets and offset > end_offsets[tp]:
                    self._fault(f"{path}/{name}", f"{tp} is at offset {offset}, its log ends at {end_offsets[tp]}")

    # --- one file -----------------------------------------------------------------------------------------------------

    def _segment(self, path: str, kind: Kind, epochs: Epochs, aborts: AbortedCheck | None = None) -> int:
        """Returns the segment's end offset."""
        check = self._index_check(path, kind)
        aborts = aborts or AbortedCheck(promised_end_offset=0)  # without its neighbours: who knows what was open
        aborts.segment(self._aborted(path))
        end_offset = kind.base_offset
        try:
            file = self._fs.open(path, writable=False)
        except OSError as error:
            self._unreadable(path, error)
            return end_offset
        try:
            size_bytes = file.size()
            self._counted(size_bytes)
            faults: list[str] = []
            for part in walk(file, size_bytes, kind.base_offset, with_records=self._with_records):
                if isinstance(part, Rest):
                    faults.append(f"position {part.position}: {part.fault} ({part.size_bytes} bytes)")
                    self._advance(part.size_bytes)
                    continue
                header = part.header
                where = f"the batch at offset {header.base_offset}, position {part.position}"
                faults += [f"{where}: {fault}" for fault in part.faults]
                if not part.faults:
                    faults += [f"{where}: {fault}" for fault in epochs.check(header.base_offset, header.leader_epoch)]
                check.batch(part)
                aborts.batch(part)
                end_offset = max(end_offset, header.last_offset + 1)
                self.report.batches += 1
                self.report.records += max(header.count, 0)
                self._advance(header.size_bytes)
        finally:
            file.close()
        check.finish()
        self._faults(path, faults)
        self._faults(_beside(path, names.INDEX), check.offset_faults)
        self._faults(_beside(path, names.TIME_INDEX), check.time_faults)
        self._faults(_beside(path, names.TXN_INDEX), aborts.faults)
        return end_offset

    def _index_check(self, path: str, kind: Kind) -> IndexCheck:
        offsets: list[OffsetEntry] = []
        times: list[TimeEntry] = []
        if not path.endswith(names.LOG):
            return IndexCheck(offsets, times)
        if (data := self._read_beside(_beside(path, names.INDEX))) is not None:
            offsets, fault = offset_entries(data, kind.base_offset)
            self._faults(_beside(path, names.INDEX), [fault] if fault else [])
        if (data := self._read_beside(_beside(path, names.TIME_INDEX))) is not None:
            times, fault = time_entries(data, kind.base_offset)
            self._faults(_beside(path, names.TIME_INDEX), [fault] if fault else [])
        return IndexCheck(offsets, times)

    def _aborted(self, path: str) -> list[AbortedTxn]:
        try:
            return txn_entries(self._fs.read_file(_beside(path, names.TXN_INDEX)))[0]
        except OSError:
            return []  # there is none, or it is told when the file itself is verified

    def _small_file(self, path: str, kind: Kind) -> None:
        try:
            self._counted(self._fs.file_size(path))
            found = items(self._fs, path, kind, with_records=False, advance=self._advance)
            self._faults(path, [fault for item in found for fault in item.faults])
        except OSError as error:
            self._unreadable(path, error)

    def _read_beside(self, path: str) -> bytes | None:
        if not self._fs.exists(path):
            return None
        try:
            data = self._fs.read_file(path)
        except OSError as error:
            self._unreadable(path, error)
            return None
        self._counted(len(data))
        self._advance(len(data))
        return data

    def _epochs(self, path: str, present: list[str]) -> Epochs:
        if names.LEADER_EPOCHS not in present:
            return Epochs([])
        try:
            rows = decode_lines(self._fs.read_file(f"{path}/{names.LEADER_EPOCHS}"))
            pairs = [tuple(map(int, row.split())) for row in rows]
            return Epochs([(start_offset, epoch) for epoch, start_offset in pairs])
        except (CorruptCheckpoint, OSError, ValueError):
            return Epochs([])  # told when the file itself is verified

    def _offsets(self, path: str) -> dict[TopicPartition, int]:
        try:
            return decode_offsets(self._fs.read_file(path))
        except (CorruptCheckpoint, OSError):
            return {}  # likewise

    # --- the report ---------------------------------------------------------------------------------------------------

    def _counted(self, size_bytes: int) -> None:
        self.report.files += 1
        self.report.size_bytes += size_bytes

    def _fault(self, path: str, what: str) -> None:
        self.report.faults.append(Fault(path, what))

    def _faults(self, path: str, found: list[str]) -> None:
        for what in found[:FAULTS_PER_FILE_MAX]:
            self._fault(path, what)
        if len(found) > FAULTS_PER_FILE_MAX:
            self._fault(path, f"and {len(found) - FAULTS_PER_FILE_MAX:,} more faults")

    def _unreadable(self, path: str, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # a running broker removes what retention takes
            self._fault(path, f"can't be read: {in_words(error).removeprefix(path + ': ')}")


class Epochs:
    """The leader epochs of a partition: those of its checkpoint, and those met in the batches, which never fall."""

    def __init__(self, entries: list[tuple[int, int]]) -> None:
        self._entries = sorted(entries)  # (start offset, epoch)
        self._latest = -1

    def check(self, base_offset: int, epoch: int) -> Iterator[str]:
        if epoch < 0:
            return
        if epoch < self._latest:
            yield f"leader epoch {epoch} after {self._latest}"
        self._latest = max(self._latest, epoch)
        slot = bisect_right(self._entries, base_offset, key=lambda entry: entry[0]) - 1
        # A newer epoch than the file's is one that was not written yet.
        if slot >= 0 and self._entries[slot][1] != epoch and epoch <= self._entries[-1][1]:
            yield f"leader epoch {epoch}, but {names.LEADER_EPOCHS} says {self._entries[slot][1]}"


_OFFSET_FILES = (names.RECOVERY_POINTS, names.HIGH_WATERMARKS, names.LOG_STARTS, names.CLEANED_OFFSETS)


def partition_folders(fs: FileSystem, path: str) -> list[str]:
    """Names of the folders of partitions in a data folder, those set aside included, those on their way out not."""
    return [
        name
        for name in fs.list_dir(path)
        if not name.endswith(names.DELETE_FOLDER)
        and (names.parse_folder_name(name) or name.endswith((names.STRAY_FOLDER, names.FUTURE_FOLDER)))
        and fs.is_dir(f"{path}/{name}")
    ]


def is_partition_folder(fs: FileSystem, path: str) -> bool:
    kinds = [kind_of(name) for name in fs.list_dir(path) if name != names.META_PROPERTIES]
    return any(
        kind is not None and (kind.suffix == BATCHES or kind.suffix == names.PARTITION_METADATA) for kind in kinds
    )


def is_data_folder(fs: FileSystem, path: str) -> bool:
    """Its mark, or one partition: a folder's name alone says little, there are others that end in a number."""
    return fs.exists(f"{path}/{names.META_PROPERTIES}") or any(
        is_partition_folder(fs, f"{path}/{name}") for name in partition_folders(fs, path)
    )


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _parent(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def _beside(path: str, suffix: str) -> str:
    return path.removesuffix(names.LOG) + suffix
