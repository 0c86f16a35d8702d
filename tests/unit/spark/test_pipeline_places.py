"""No table lies inside another one, nor in the folder of a pipeline: by whatever name it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from headpond.spark.pipeline.failures import WrongFolder
from headpond.spark.pipeline.load import load_pipeline
from headpond.spark.pipeline.places import check_around
from unit.spark.declarations import VARIABLES, mistakes, written

TWO = """\
name = "p"
{more}
[source.s]
topic = "t"
format = "string"
[sink.one]
from = "s"
parquet = "{one}"
{of_one}
[sink.two]
from = "s"
parquet = "{two}"
"""


def two(one: str, other: str, more: str = "", of_one: str = "") -> str:
    return TWO.format(one=one, two=other, more=more, of_one=of_one)


@pytest.mark.parametrize("upsert", ["", 'upsert = "value"'])
@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("out", "out/ones", "out/ones lies inside out, where sink one writes"),
        ("out/ones", "out", "out/ones, where sink one writes, lies inside out"),
        ("out", "out", "out is where sink one writes, too"),
        ("out", "out/", "out is where sink one writes, too"),
        ("out", "./x/../out//deep", "out/deep lies inside out, where sink one writes"),
        ("out", "link", "link is where sink one writes, too"),
        ("out", "link/ones", "link/ones lies inside out, where sink one writes"),
        ("out", "file://{here}/out/ones", "file://{here}/out/ones lies inside out, where sink one writes"),
        ("s3a://b/out", "s3a://b/out/x/../ones/", "s3a://b/out/x/../ones/ lies inside s3a://b/out, where sink one"),
        ("s3a://b", "S3A://b/ones", "S3A://b/ones lies inside s3a://b, where sink one writes"),
    ],
)
def test_nested_tables_are_refused(tmp_path: Path, one: str, other: str, told: str, upsert: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    text = two(one, other.format(here=tmp_path), of_one=upsert)
    (found,) = mistakes(tmp_path, text)
    plain = found.replace(f"{tmp_path}/", "")
    assert plain.startswith(f"p.toml:10: sink two: {told.format(here=tmp_path)}".replace(f"{tmp_path}/", "")), plain


@pytest.mark.parametrize(
    ("one", "other"), [("out", "outer"), ("out-1", "out"), ("s3a://b/out", "s3a://c/out/ones"), ("a/b", "a/c")]
)
def test_tables_beside_each_other_are_fine(tmp_path: Path, one: str, other: str) -> None:
    assert len(load_pipeline(written(tmp_path, two(one, other)), VARIABLES).sinks) == 2


@pytest.mark.parametrize(
    ("table", "folder", "told"),
    [
        (".pipelines/p/tables", "", "/.pipelines/p/tables lies inside {here}/.pipelines/p, where the pipeline keeps"),
        (".", "", "{here}/.pipelines/p, where the pipeline keeps its checkpoints, lies inside {here}"),
        ("kept", 'folder = "kept"', "/kept is where the pipeline keeps its checkpoints"),
    ],
)
def test_a_table_and_the_folder_of_its_pipeline_lie_apart(tmp_path: Path, table: str, folder: str, told: str) -> None:
    found = mistakes(tmp_path, two(table, "elsewhere/out", more=folder))
    assert told.format(here=tmp_path) in found[0], found


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("_spark_metadata", "which is a table"),
        ("current", "which is a table with upsert"),
        ("checkpoints", "which is the folder of a pipeline"),
    ],
)
def test_a_folder_inside_what_another_pipeline_owns_is_refused(tmp_path: Path, made: str, told: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    if made == "current":
        (theirs / "current").symlink_to("0123456789ab-00000007")
    else:
        (theirs / made).mkdir()
        (theirs / "pipeline.json").write_text("{}")
    (tmp_path / "way").symlink_to(theirs)
    for path in (theirs / "deep/er", tmp_path / "way/mine"):
        with pytest.raises(WrongFolder, match=f"sink x: {path} lies inside {theirs}, {told}"):
            check_around(str(path), "sink x: ")
    check_around(str(theirs), "itself it may be")
    check_around(str(tmp_path / "beside"), "")


@pytest.mark.parametrize("key", ["parquet", "folder"])
def test_a_variable_in_a_path_is_told_and_makes_no_folder_of_that_name(tmp_path: Path, key: str) -> None:
    text = two(
        "${HOST}/out" if key == "parquet" else "out", "two", more='folder = "${HOST}"' if key == "folder" else ""
    )
    (found,) = mistakes(tmp_path, text)
    assert f"{key} is '${{HOST}}" in found and "variables are replaced in broker, options and spark only" in found
