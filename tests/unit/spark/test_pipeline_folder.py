"""The folder of a pipeline: what binds it, and what a run that Spark refused leaves to fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headpond.spark.pipeline.checkpoint import Checkpoint
from headpond.spark.pipeline.failures import WrongFolder
from headpond.spark.pipeline.figures import Figures
from headpond.spark.pipeline.folder import Folder, TableColumns, known_columns
from headpond.spark.pipeline.load import load_pipeline
from headpond.spark.pipeline.model import Pipeline
from headpond.spark.pipeline.tables import check_table, sweep
from unit.spark.declarations import VARIABLES, written

TEXT = """\
name = "p"
[source.s]
topic = "t"
format = "string"
[sink.out]
from = "s"
parquet = "out"
"""
BEFORE, AFTER = {"id": "int"}, {"id": "int", "more": "string"}


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return load_pipeline(written(tmp_path, TEXT), VARIABLES)


def log(checkpoint: Checkpoint, name: str, *batches: int) -> None:
    folder = Path(checkpoint.path) / name
    folder.mkdir(parents=True, exist_ok=True)
    for batch in batches:
        (folder / str(batch)).write_text("v1\n{}\n")


def bound(folder: Folder, pipeline: Pipeline, planned: dict[str, str], *, written: int) -> None:
    before = folder.check(pipeline)
    known = known_columns(before, pipeline.sinks[0], written=written)
    folder.bind(pipeline, before, {}, {"out": TableColumns(known, planned, written)}, {})


def test_columns_count_from_the_first_batch_that_was_written_with_them(pipeline: Pipeline) -> None:
    folder = Folder(pipeline.folder)
    (sink,) = pipeline.sinks
    bound(folder, pipeline, BEFORE, written=-1)
    log(folder.checkpoint("out"), "offsets", 0)
    assert known_columns(folder.check(pipeline), sink, written=-1) is None
    bound(folder, pipeline, BEFORE, written=0)
    assert known_columns(folder.check(pipeline), sink, written=0) == BEFORE

    bound(folder, pipeline, AFTER, written=0)  # and Spark refuses it
    log(folder.checkpoint("out"), "offsets", 1)
    assert known_columns(folder.check(pipeline), sink, written=0) == BEFORE
    bound(folder, pipeline, BEFORE, written=0)
    bound(folder, pipeline, AFTER, written=0)
    assert known_columns(folder.check(pipeline), sink, written=1) == AFTER


def test_nothing_is_bound_before_a_batch_was_planned(pipeline: Pipeline) -> None:
    folder = Folder(pipeline.folder)
    bound(folder, pipeline, BEFORE, written=-1)
    identity = folder.check(pipeline)["id"]
    (source,), (sink,) = pipeline.sources, pipeline.sinks
    other = replace(pipeline, sources=(replace(source, topics=("u",)),), sinks=(replace(sink, target="/elsewhere"),))
    assert folder.check(other)["id"] == identity
    log(folder.checkpoint("out"), "offsets", 0)
    with pytest.raises(WrongFolder, match="source s became 'stream of u as string'"):
        folder.check(other)
    with pytest.raises(WrongFolder, match="sink out became"):
        folder.check(replace(other, sources=pipeline.sources))


def test_a_schema_that_was_inferred_stays(pipeline: Pipeline) -> None:
    folder = Folder(pipeline.folder)
    assert folder.bind(pipeline, {}, {"s": "inferred"}, {}, {})["schemas"] == {"s": "inferred"}
    log(folder.checkpoint("out"), "offsets", 0)
    before = folder.check(pipeline)
    assert folder.bind(pipeline, before, {}, {}, {})["schemas"] == {"s": "inferred"}


def test_a_folder_that_is_damaged_is_told(pipeline: Pipeline) -> None:
    folder = Folder(pipeline.folder)
    Path(pipeline.folder).mkdir(parents=True)
    (Path(pipeline.folder) / "pipeline.json").write_text('{"name": "p", "sinks": 3}')
    with pytest.raises(WrongFolder, match=r"pipeline\.json is damaged"):
        folder.check(pipeline)


def test_files_under_way_of_a_killed_run_are_swept_from_a_checkpoint_and_nothing_else(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path))
    assert (checkpoint.sweep(), checkpoint.planned, checkpoint.query_id) == (0, -1, None)
    log(checkpoint, "commits", 0)
    log(checkpoint, "offsets", 0, 10, 9)
    kept = [".0.crc", "0", "10", "9", "notes.tmp"]
    left = [".11.6a3f121b-e0e8-43df-8846-867ef6f2163c.tmp", "..11.6a3f121b-e0e8-43df-8846-867ef6f2163c.tmp.crc"]
    for name in (*kept, *left):
        (tmp_path / "offsets" / name).touch()
    assert checkpoint.sweep() == 2
    assert sorted(path.name for path in (tmp_path / "offsets").iterdir()) == sorted(kept)
    assert (checkpoint.planned, checkpoint.committed) == (10, 0)


def test_a_table_that_is_appended_to_begins_in_an_empty_folder(pipeline: Pipeline, tmp_path: Path) -> None:
    (sink,) = pipeline.sinks
    new = Checkpoint(str(tmp_path / "checkpoint"))
    check_table(sink, new)
    out = tmp_path / "out"
    (out / "_spark_metadata").mkdir(parents=True)
    (out / "part-00000-x.parquet").touch()
    check_table(sink, new)  # killed in its first batch, before its checkpoint said so
    (out / "_spark_metadata" / "0").write_text("v1\n")
    with pytest.raises(WrongFolder, match="was written by another query"):
        check_table(sink, new)
    (out / "_spark_metadata" / "0").unlink()
    (out / "_spark_metadata").rmdir()
    with pytest.raises(WrongFolder, match=r"holds 'part-00000-x\.parquet', and a table begins in an empty folder"):
        check_table(sink, new)


def test_a_table_is_swept_of_files_that_spark_has_left_and_of_no_others(pipeline: Pipeline, tmp_path: Path) -> None:
    (sink,) = pipeline.sinks
    out = tmp_path / "out"
    for name in ("_spark_metadata", "day=1/hour=2", "ones", "other=1/_spark_metadata", "current"):
        (out / name).mkdir(parents=True)
    (out / "_spark_metadata" / "0").write_text('v1\n{"path":"file:///x/day=1/part-1.parquet"}\n')
    kept = ["day=1/part-1.parquet", "ones/part-2.parquet", "other=1/part-2.parquet", "mine.parquet", "current/part-3"]
    left = ["part-2.parquet", "day=1/hour=2/part-4.parquet"]
    for name in (*kept, *left):
        (out / name).touch()
    assert sweep(sink) == len(left)
    assert all((out / name).exists() for name in kept)
    assert not any((out / name).exists() for name in left)


def test_rows_of_a_batch_that_was_written_before_are_not_rows_out() -> None:
    figures = Figures("out", "group", held=4)
    for batch in (4, 5):
        figures.add(
            {
                "batchId": batch,
                "timestamp": f"2026-01-01T00:00:0{batch}Z",
                "numInputRows": 3,
                "observedMetrics": {"headpond": {"rows": 3}},
                "sources": [],
            }
        )
    assert (figures.rows_read, figures.rows_written) == (6, 3)
