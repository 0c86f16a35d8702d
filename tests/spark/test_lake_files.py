"""Files of a lake, without Spark: whatever timestamps producers choose, each row is in one file of one day."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from headpond.runtime.files import DiskFile, DiskFileSystem
from headpond.spark.lake import files
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.files import SCHEMA, DateFiles, FileTarget, Growing, Written
from headpond.spark.lake.layout import date_of

DAY_US = 86_400_000_000


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "staging").mkdir()
    return tmp_path


def target(lake: Path, growing: dict[str, Growing] | None = None) -> FileTarget:
    return FileTarget(str(lake), "orders", "staging", 1, 0, "zstd", 1_000_000, growing or {})


def rows(first_offset: int, times_us: list[int]) -> pa.RecordBatch:
    count = len(times_us)
    columns = [
        [b"key"] * count,
        [f"{first_offset + number}".encode() for number in range(count)],
        [None] * count,
        [0] * count,
        list(range(first_offset, first_offset + count)),
        times_us,
        [0] * count,
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def written(lake: Path, *chunks: pa.RecordBatch, growing: dict[str, Growing] | None = None) -> list[Written]:
    dates = DateFiles(target(lake, growing), DiskFileSystem())
    for chunk in chunks:
        dates.add(chunk)
    return dates.close()


def offsets(lake: Path, one: Written) -> list[int]:
    found: list[int] = pq.read_table(lake / one.move.staged)["offset"].to_pylist()
    assert len(found) == one.file.records
    return found


def test_days_that_no_calendar_has_count_as_its_first_or_last(lake: Path) -> None:
    times = [0, -1_000, DAY_US, 9_000_000_000_000_000 * 1_000, -9_000_000_000_000_000 * 1_000, DAY_US - 1]
    done = written(lake, rows(0, times))
    assert {date_of(one.move.final): offsets(lake, one) for one in done} == {
        "0001-01-01": [4],
        "1969-12-31": [1],
        "1970-01-01": [0, 5],
        "1970-01-02": [2],
        "9999-12-31": [3],
    }


def test_more_days_than_files_may_be_open_lose_and_repeat_nothing(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "OPEN_FILES_MAX", 2)
    chunks = [rows(start, [(start + number) % 5 * DAY_US for number in range(3)]) for start in range(0, 30, 3)]
    done = written(lake, *chunks)
    assert sorted(offset for one in done for offset in offsets(lake, one)) == list(range(30))
    assert len({one.move.final for one in done}) == len(done) > 5


@pytest.mark.parametrize("limit", ["ROW_GROUP_BYTES", "BUFFERED_BYTES_MAX"])
def test_rows_that_do_not_wait_in_memory_are_in_the_file(
    lake: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(files, limit, rows(0, [0] * 3).nbytes + 1)
    done = written(lake, *(rows(start, [0, DAY_US, 1]) for start in range(0, 30, 3)))
    assert [offsets(lake, one) for one in done] == [
        [offset for offset in range(30) if offset % 3 != 1],
        [offset for offset in range(30) if offset % 3 == 1],
    ]
    assert all(pq.ParquetFile(lake / one.move.staged).num_row_groups > 1 for one in done)


def test_a_file_grows_with_what_it_had_and_one_that_was_changed_is_not_replaced(lake: Path) -> None:
    (first,) = written(lake, rows(0, [0, 1, 2]))
    (lake / first.move.final).parent.mkdir(parents=True)
    (lake / first.move.staged).rename(lake / first.move.final)
    growing = {"1970-01-01": Growing(first.move.final, first.file)}
    (grown,) = written(lake, rows(3, [3, 4]), growing=growing)
    assert (grown.move.final, offsets(lake, grown), grown.new_records) == (first.move.final, [0, 1, 2, 3, 4], 2)
    assert grown.file.spans[0].from_offset == 0 and grown.file.spans[0].end_offset == 5

    pq.write_table(pa.Table.from_batches([rows(0, [0, 1])]), lake / first.move.final)
    with pytest.raises(LakeError, match="has 2 records, and the lake says 3: was it changed"):
        written(lake, rows(3, [3]), growing=growing)


def test_a_file_that_has_grown_full_is_followed_by_a_new_one(lake: Path) -> None:
    (first,) = written(lake, rows(0, [0, 1]))
    (lake / first.move.final).parent.mkdir(parents=True)
    (lake / first.move.staged).rename(lake / first.move.final)
    small = msgspec.structs.replace(
        target(lake, {"1970-01-01": Growing(first.move.final, first.file)}), file_size_bytes=1
    )
    dates = DateFiles(small, DiskFileSystem())
    for start in (2, 4, 6):
        dates.add(rows(start, [start, start + 1]))
    done = dates.close()
    assert [offsets(lake, one) for one in done] == [[0, 1, 2, 3], [4, 5], [6, 7]]
    assert done[0].move.final == first.move.final and len({one.move.final for one in done}) == 3


def test_a_file_is_synced_before_anybody_hears_of_it(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def sync(file: DiskFile) -> None:
        synced.append(file.size())

    monkeypatch.setattr(DiskFile, "sync", sync)
    done = written(lake, rows(0, [0, DAY_US]))
    assert sorted(synced) == sorted(one.file.size_bytes for one in done) and len(done) == 2
