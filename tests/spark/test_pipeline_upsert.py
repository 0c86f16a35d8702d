"""Tables with upsert: which row of a key is the last, and whose folder it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.spark.pipeline.failures import RunFailed, WrongFolder
from headpond.testing import Broker, Record
from spark.pipelines import Declared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = """
    name = "{topic}"
    [source.people]
    topic = "{topic}"
    format = "json"
    schema = "id INT, name STRING, at INT"
    [source.ranks]
    topic = "{topic}.ranks"
    read = "table"
    format = "json"
    schema = "id INT, rank INT"
    [step.view]
    sql = "{sql}"
    [sink.people]
    from = "view"
    parquet = "{folder}"
    upsert = "id"
    {more}
"""


def person(id: int, name: str, at: int | None = None, partition: int = 0) -> Record:
    return Record(json.dumps({"id": id, "name": name, "at": at}), partition=partition)


@pytest.fixture
def ranks(spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(f"{topic}.ranks", ['{"id": 1, "rank": 7}'])


def table(spark: SparkSession, broker: Broker, topic: str, folder: Path, sql: str, more: str = "") -> Declared:
    return Declared(folder, spark, broker, TABLE.format(topic=topic, sql=sql, more=more, folder="out"))


def names(declared: Declared, folder: str = "out") -> dict[int, str]:
    rows = declared.table(f"{folder}/current")
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["name"] for row in rows}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, name FROM people",
        "WITH p AS (SELECT * FROM people) SELECT id, name FROM p WHERE id > 0 UNION ALL SELECT 3, 'c' FROM p",
    ],
)
@pytest.mark.usefixtures("ranks")
def test_the_row_that_was_read_last_stays_though_the_view_has_no_offsets(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path, sql: str
) -> None:
    spark_broker.create_topic(topic, partitions=3)
    people = [person(1, f"{number}", partition=0) for number in range(40)]
    people += [person(2, f"{number}", partition=2) for number in range(40)]
    spark_broker.produce(topic, [*people, person(1, "third"), person(2, "b", partition=2)])
    declared = table(spark, spark_broker, topic, tmp_path, sql)
    declared.run()
    found = names(declared)
    assert (found[1], found[2]) == ("third", "b")
    spark_broker.produce(topic, [person(1, "fourth")])
    declared.run()
    assert names(declared)[1] == "fourth"


@pytest.mark.parametrize("sql", ["SELECT * FROM people", "SELECT id, name, at FROM people"])
@pytest.mark.usefixtures("ranks")
def test_offsets_of_different_partitions_are_not_compared_and_order_by_goes_before_them(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path, sql: str
) -> None:
    """Of equals the one of the later partition is last; though its offset is smaller."""
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [person(9, "fill"), person(9, "fill"), person(1, "high offset", 5), person(2, "x", 8)])
    spark_broker.produce(
        topic, [person(1, "of partition 1", 5, 1), person(2, "older", 7, 1), person(2, "null", None, 1)]
    )
    declared = table(spark, spark_broker, topic, tmp_path, sql, 'order_by = "at"')
    declared.run()
    found = names(declared)
    assert (found[1], found[2]) == ("of partition 1", "x")


@pytest.mark.usefixtures("ranks")
def test_rows_that_nothing_tells_apart_fail_the_batch_with_what_to_add(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    joined = "SELECT p.id, p.name, p.at {more} FROM people p JOIN ranks r ON p.id = r.id"
    spark_broker.produce(topic, [person(1, "one", 1), person(1, "one", 1)])
    declared = table(spark, spark_broker, topic, tmp_path, joined.format(more=""))
    declared.run()
    assert names(declared) == {1: "one"}, "equal rows are one"
    spark_broker.produce(topic, [person(1, "two", 2), person(1, "three", 2), person(1, "four", 1)])
    told = "view has several rows of id 1 in one batch, and nothing says which is the last: give order_by a column"
    with pytest.raises(RunFailed, match=told):
        declared.run()
    declared.write(declared.file.read_text() + 'order_by = "at"\n')
    with pytest.raises(RunFailed, match=f"{told} that tells them apart, or let view have _topic, _partition, _offset"):
        declared.run()
    assert names(declared) == {1: "one"}
    text = declared.file.read_text().replace(
        joined.format(more=""), joined.format(more=", p._topic, p._partition, p._offset")
    )
    declared.write(text)
    declared.run()
    assert names(declared) == {1: "three"}


@pytest.mark.usefixtures("ranks")
def test_groups_have_one_row_for_each_key(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, [person(1, "a"), person(1, "b"), person(2, "c")])
    declared = table(spark, spark_broker, topic, tmp_path, "SELECT id, max(name) AS name FROM people GROUP BY id")
    declared.run()
    spark_broker.produce(topic, [person(2, "d")])
    declared.run()
    assert names(declared) == {1: "b", 2: "d"}


@pytest.mark.usefixtures("ranks")
def test_a_folder_with_something_else_in_it_is_refused_and_left_as_it_is(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, [person(1, "a")])
    declared = table(spark, spark_broker, topic, tmp_path, "SELECT id, name FROM people")
    backup = tmp_path / "out" / "backup-20240101"
    backup.mkdir(parents=True)
    (backup / "file.txt").write_text("precious")
    with pytest.raises(WrongFolder, match="holds 'backup-20240101', which is not of this table"):
        declared.run()
    assert (backup / "file.txt").read_text() == "precious"
    assert not (tmp_path / ".pipelines").exists()
    backup.rename(tmp_path / "elsewhere")
    for name in "bcd":
        declared.run()
        spark_broker.produce(topic, [person(1, name)])
    (tmp_path / "out" / "report-2024").write_text("precious")
    with pytest.raises(WrongFolder, match="holds 'report-2024', which is not of this table"):
        declared.run()
    assert (tmp_path / "out" / "report-2024").read_text() == "precious"
    assert names(declared) == {1: "c"}


@pytest.mark.usefixtures("ranks")
def test_a_second_pipeline_can_not_take_over_a_table(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, [person(1, "a")])
    first = table(spark, spark_broker, topic, tmp_path, "SELECT id, name FROM people")
    first.run()
    text = first.file.read_text()
    first.write(text.replace(f'name = "{topic}"', 'name = "second"'))
    with pytest.raises(WrongFolder, match="out was written by another query: give the sink another folder, or remove"):
        first.run()
    first.write(text)
    first.run()
    assert names(first) == {1: "a"}


@pytest.mark.usefixtures("ranks")
def test_names_with_odd_characters_are_names(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    home = tmp_path / 'it\'s [1] {a,b} *? "here" a.b'
    home.mkdir()
    spark_broker.produce(topic, [person(1, "a")])
    sql = "SELECT id AS `i.d`, name AS `n``a me` FROM people"
    declared = table(spark, spark_broker, topic, home, sql)
    declared.write(declared.file.read_text().replace('upsert = "id"', 'upsert = "i.d"'))
    declared.run()
    spark_broker.produce(topic, [person(1, "b"), person(2, "c")])
    declared.run()
    import pyarrow.parquet as pq

    rows = pq.read_table(home / "out" / "current").to_pylist()
    assert sorted(map(str, rows)) == sorted(map(str, [{"i.d": 1, "n`a me": "b"}, {"i.d": 2, "n`a me": "c"}]))


@pytest.mark.usefixtures("ranks")
def test_a_wrong_delete_when_is_told_before_anything_is_written(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, [person(1, "a")])
    for wrong in ("op = 'd'", "id +", "id + 1"):
        declared = table(spark, spark_broker, topic, tmp_path, "SELECT id FROM people", f'delete_when = "{wrong}"')
        with pytest.raises(RunFailed, match="sink people: delete_when: "):
            declared.run()
    assert not (tmp_path / ".pipelines").exists()
