"""A lake on disk, without Spark: whatever a crash interrupts, readers see each record once, and none goes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headpond.model import InvariantBroken
from headpond.runtime.files import DiskFileSystem
from headpond.spark.lake import layout
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.state import LakeFile, Move, Reach, Span, TopicState
from headpond.spark.lake.store import Lake

CHANGES = ("make_dirs", "rename", "remove", "remove_tree", "sync_dir", "write_file_atomically")


class Crash(BaseException):
    """The process is gone: nothing that follows happens."""


class CrashingDisk:
    """The real file system, up to a number of changes."""

    def __init__(self, changes: int) -> None:
        self._real = DiskFileSystem()
        self.left = changes

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if name not in CHANGES:
            return real

        def change(*arguments: Any) -> Any:
            if self.left == 0:
                raise Crash
            self.left -= 1
            return real(*arguments)

        return change


def seen_by_readers(path: Path) -> Counter[str]:
    """What a glob finds, as DuckDB would."""
    found: Counter[str] = Counter()
    for file in path.glob("**/*.parquet"):
        found.update(json.loads(file.read_text()))
    return found


class Writer:
    """Commits files of names instead of Parquet: for the store, bytes are bytes."""

    def __init__(self, path: Path, fs: Any = None) -> None:
        self.path = path
        self.lake = Lake(str(path), fs)
        self._staged = 0

    def commit(self, version: int, files: dict[str, list[str]]) -> None:
        """``files``: name -> all the records that it holds from now on."""
        before = self.lake.state("orders")
        (self.path / layout.STAGING).mkdir(parents=True, exist_ok=True)
        moves = []
        known = {} if before is None else dict(before.files)
        for name, records in files.items():
            self._staged += 1
            staged = f"{layout.STAGING}/{version}-{self._staged}{layout.STAGED}"
            (self.path / staged).write_text(json.dumps(records))
            final = f"topic=orders/{name}.parquet"
            moves.append(Move(staged, final))
            known[final] = LakeFile(1, len(records), {0: Span(0, 1)})
        total = sum(file.records for file in known.values())
        self.lake.commit(TopicState("orders", "cluster", "id", version, total, {0: Reach(0, total)}, known, moves))


def archive_twice(path: Path, fs: Any) -> None:
    """Two runs: the second grows one file of the first, and adds one."""
    writer = Writer(path, fs)
    with writer.lake.writing():
        writer.commit(1, {"date=1/a": ["r1", "r2"], "date=2/b": ["r3"]})
    with writer.lake.writing():
        writer.commit(2, {"date=1/a": ["r1", "r2", "r4"], "date=3/c": ["r5"]})


def changes_of_two_runs(path: Path) -> int:
    disk = CrashingDisk(10_000)
    archive_twice(path, disk)
    return 10_000 - disk.left


def test_a_crash_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    everything = {"r1", "r2", "r3", "r4", "r5"}
    outcomes = set()
    for crash_after in range(changes_of_two_runs(tmp_path / "whole")):
        path = tmp_path / f"after-{crash_after}"
        path.mkdir()
        with pytest.raises(Crash):
            archive_twice(path, CrashingDisk(crash_after))
        before = seen_by_readers(path)
        assert set(before.values()) <= {1}, "a reader right after the crash sees a record twice"
        lake = Lake(str(path))
        with lake.writing():
            pass
        state = lake.state("orders")
        after = seen_by_readers(path)
        assert set(after.values()) <= {1}
        assert set(before) <= set(after), "recovery takes something away"
        assert len(after) == (0 if state is None else state.records), "the lake does not hold what it says"
        assert set(after) in (set(), {"r1", "r2", "r3"}, everything), "half a commit"
        assert not (path / layout.STAGING).exists()
        outcomes.add(len(after))
    assert outcomes == {0, 3, 5}, "the crashes have met all stages"


def test_a_reader_finishes_what_a_crash_has_left(tmp_path: Path) -> None:
    for crash_after in range(changes_of_two_runs(tmp_path / "whole")):
        path = tmp_path / f"after-{crash_after}"
        path.mkdir()
        with pytest.raises(Crash):
            archive_twice(path, CrashingDisk(crash_after))
        state = Lake(str(path)).state("orders")
        if state is not None:
            assert len(seen_by_readers(path)) == state.records


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    refused = pytest.raises(LakeError, match="is being written by another process")
    with lake.writing(), refused, Lake(lake.path).writing():
        pass
    with Lake(lake.path).writing():
        pass


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(LakeError, match=r"is no lake, and holds thesis.txt"):
        Lake(str(tmp_path)).create()
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("path", "says"),
    [("s3://bucket/lake", "is a folder"), ("nowhere", "does not exist: `headpond pipeline archive --to")],
)
def test_what_is_no_lake_is_told(path: str, says: str) -> None:
    with pytest.raises(LakeError, match=says):
        Lake(path).mark()


def test_a_file_that_somebody_deleted_is_missed(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "lake")
    with writer.lake.writing():
        writer.commit(1, {"date=1/a": ["r1"]})
    (tmp_path / "lake/topic=orders/date=1/a.parquet").unlink()
    with pytest.raises(LakeError, match=r"a\.parquet is missing"), writer.lake.writing():
        pass


def test_a_lake_of_a_newer_headpond_is_refused(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.create()
    (tmp_path / "lake" / layout.LAKE_FILE).write_text('{"id": "x", "format": 99}')
    with pytest.raises(LakeError, match="newer headpond"):
        lake.mark()
    (tmp_path / "lake" / layout.LAKE_FILE).write_text('{"id": ')
    with pytest.raises(LakeError, match="is damaged"):
        lake.mark()


def test_the_names_of_staged_files_are_safe_before_the_state_names_them(tmp_path: Path) -> None:
    """A power failure keeps what was synced: a file's bytes, and apart from them the folder that has its name."""
    said: list[tuple[str, str]] = []

    class ToldDisk(CrashingDisk):
        def __getattr__(self, name: str) -> Any:
            real = super().__getattr__(name)

            def told(*arguments: Any) -> Any:
                said.append((name, str(arguments[0]).removeprefix(f"{tmp_path}/lake/")))
                return real(*arguments)

            return told if name in CHANGES else real

    writer = Writer(tmp_path / "lake", ToldDisk(10_000))
    with writer.lake.writing():
        said.clear()
        writer.commit(1, {"date=1/a": ["r1"]})
    replaced = said.index(("write_file_atomically", "_lake/topics/orders.json"))
    assert {("sync_dir", "_lake/staging"), ("sync_dir", "_lake")} <= set(said[:replaced])
    renamed = next(number for number, (name, _) in enumerate(said) if name == "rename")
    assert replaced < renamed < said.index(("sync_dir", "topic=orders/date=1"))


def test_what_a_killed_run_has_staged_is_gone_when_the_next_one_begins(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.create()
    left = tmp_path / "lake" / layout.STAGING / "killed" / f"a{layout.STAGED}"
    left.parent.mkdir(parents=True)
    left.write_text("half of it")
    with lake.writing():
        assert not left.exists()


def test_a_commit_that_does_not_follow_the_last_one_is_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "lake")
    with writer.lake.writing():
        writer.commit(1, {"date=1/a": ["r1"]})
        with pytest.raises(InvariantBroken, match="does not follow"):
            writer.commit(1, {"date=1/b": ["r2"]})
    assert set(seen_by_readers(tmp_path / "lake")) == {"r1"}
