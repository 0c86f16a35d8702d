"""Two sides are equal if and only if every record is: without Spark, on files of a lake."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import pyarrow as pa
import pyarrow.parquet as pq

from headpond.spark.lake import compare_task
from headpond.spark.lake.archive_plan import Part
from headpond.spark.lake.compare_task import CompareWork, LakeSide, sum_blocks
from headpond.spark.lake.files import SCHEMA
from headpond.spark.lake.store import Lake

Row = dict[str, Any]
Sums = dict[int, tuple[int, int]]


class Files:
    """A lake whose partition 0 is written as it comes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._id = Lake(str(folder)).create().id
        self._numbers = count()

    def sums(self, *pieces: list[Row], is_by_offset: bool = True) -> Sums:
        """(records, sum) of each block; every piece is a file of its own."""
        names = [self._file(piece) for piece in pieces]
        work = CompareWork(LakeSide(str(self._folder), self._id, names), Part(0, 0, 1_000), is_by_offset)
        return {number: (block.records, block.total) for number, block in sum_blocks(work).blocks.items()}

    def _file(self, piece: list[Row]) -> str:
        name = f"{next(self._numbers)}.parquet"
        pq.write_table(pa.Table.from_pylist(piece, SCHEMA), self._folder / name)
        return name


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.setattr(compare_task, "BLOCK", 4)
    return Files(tmp_path)


def rows(*offsets: int) -> list[Row]:
    return [
        {
            "key": b"k%d" % offset,
            "value": b"v%d" % offset,
            "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}],
            "partition": 0,
            "offset": offset,
            "timestamp": 1_000 * offset,
            "timestampType": 0,
        }
        for offset in offsets
    ]


def test_it_does_not_matter_how_rows_are_spread_over_files(files: Files) -> None:
    whole = files.sums(rows(*range(10)))
    assert {number: records for number, (records, _) in whole.items()} == {0: 4, 1: 4, 2: 2}
    pieces = [rows(9, 0, 4), rows(3), rows(2, 1, 8, 5), rows(7, 6)]
    for is_by_offset in (True, False):
        assert files.sums(*pieces, is_by_offset=is_by_offset) == files.sums(rows(*range(10)), is_by_offset=is_by_offset)
    assert files.sums(*pieces) == whole


CHANGES: dict[str, Callable[[Row], Row]] = {
    "another key": lambda row: {**row, "key": b"other"},
    "no key": lambda row: {**row, "key": None},
    "an empty key": lambda row: {**row, "key": b""},
    "another value": lambda row: {**row, "value": row["value"] + b"\0"},
    "no value": lambda row: {**row, "value": None},
    "an empty value": lambda row: {**row, "value": b""},
    "key and value exchanged": lambda row: {**row, "key": row["value"], "value": row["key"]},
    "no headers": lambda row: {**row, "headers": []},
    "one header less": lambda row: {**row, "headers": row["headers"][:1]},
    "headers in another order": lambda row: {**row, "headers": row["headers"][::-1]},
    "another header": lambda row: {**row, "headers": [row["headers"][0], {"key": "b", "value": b"3"}]},
    "a header of another name": lambda row: {**row, "headers": [row["headers"][0], {"key": "c", "value": b"2"}]},
    "a header without a value": lambda row: {**row, "headers": [row["headers"][0], {"key": "b", "value": None}]},
    "an empty header": lambda row: {**row, "headers": [row["headers"][0], {"key": "b", "value": b""}]},
    "another time": lambda row: {**row, "timestamp": row["timestamp"] + 1_000},
}


@pytest.mark.parametrize("changed", [0, 5, 9])
@pytest.mark.parametrize("is_by_offset", [True, False], ids=["by offset", "by order"])
def test_whatever_changes_in_a_record_changes_its_block_alone(files: Files, is_by_offset: bool, changed: int) -> None:
    before = files.sums(rows(*range(10)), is_by_offset=is_by_offset)
    seen = [before]
    for what, change in CHANGES.items():
        some = rows(*range(10))
        some[changed] = change(some[changed])
        after = files.sums(some[:5], some[5:], is_by_offset=is_by_offset)
        assert after not in seen, what
        assert [number for number in before if after[number] != before[number]] == [changed // 4], what
        seen.append(after)


def test_places_count_and_by_order_offsets_do_not(files: Files) -> None:
    before = rows(*range(4))
    exchanged = [{**before[other], "offset": place} for place, other in enumerate((0, 2, 1, 3))]
    for is_by_offset in (True, False):
        assert files.sums(exchanged, is_by_offset=is_by_offset) != files.sums(before, is_by_offset=is_by_offset)
    moved = [{**row, "offset": row["offset"] * 10} for row in before]
    assert files.sums(moved) != files.sums(before)
    assert files.sums(moved, is_by_offset=False) == files.sums(before, is_by_offset=False)


def test_a_record_that_is_there_twice_or_not_at_all_is_noticed(files: Files) -> None:
    before = files.sums(rows(*range(6)))
    for some in (rows(0, 1, 2, 3, 4), rows(0, 1, 2, 3, 4, 5, 5), rows(1, 2, 3, 4, 5), rows(0, 1, 2, 3, 4, 5, 6)):
        assert files.sums(some) != before
    assert files.sums(rows(*range(6)), [{**row, "partition": 1} for row in rows(2, 7)]) == before
