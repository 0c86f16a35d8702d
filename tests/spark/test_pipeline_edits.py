"""What is edited between runs, set back or left by a kill: it goes on, or is refused; nothing is lost either way."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.spark.pipeline.failures import RunFailed, WrongFolder
from headpond.spark.pipeline.load import load_pipeline
from headpond.testing import Broker, Record
from spark.pipelines import Declared, counts, json_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMS = """
    name = "{topic}"
    [source.people]
    topic = "{topic}"
    format = "json"
    schema = "id INT, name STRING"
    [step.sums]
    sql = "SELECT id, count(*) AS n FROM people GROUP BY id"
    [sink.sums]
    from = "sums"
    topic = "{topic}.sums"
    partitions = 1
    key = "id"
    mode = "update"
"""


def dry(declared: Declared) -> None:
    """As ``run --dry-run``."""
    from headpond.spark.pipeline.runner import Runner

    with Runner(load_pipeline(str(declared.file)), declared.broker.bootstrap_servers) as runner:
        runner.survey(is_dry=True)
        runner.plan(declared.spark)


def edited(declared: Declared, before: str, after: str) -> str:
    text = declared.file.read_text()
    assert before in text
    declared.file.write_text(text.replace(before, after))
    return text


def test_a_checkpoint_that_was_set_back_is_refused_where_a_topic_is_written_in_mode_update(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    declared = Declared(tmp_path, spark, spark_broker, SUMS.format(topic=topic))
    spark_broker.produce(topic, ['{"id": 1}'])
    assert counts(declared.run()) == {"sums": (1, 1)}
    kept, backup = tmp_path / ".pipelines" / topic, tmp_path / "backup"
    shutil.copytree(kept, backup)
    spark_broker.produce(topic, ['{"id": 1}'])
    declared.run()
    shutil.rmtree(kept)
    shutil.copytree(backup, kept)
    spark_broker.produce(topic, ['{"id": 9}'])
    for go in (dry, Declared.run):
        with pytest.raises(WrongFolder, match=r"sink sums: topic .*\.sums holds batch \d+, and the checkpoint knows"):
            go(declared)
    assert [row["n"] for row in json_values(spark_broker, f"{topic}.sums", 2)] == [1, 2]


TOPICS = """
    [sink.sums]
    from = "people"
    topic = "{topic}.sums"
    partitions = 1
    mode = "update"
    [sink.copy]
    from = "people"
    topic = "{topic}.copy"
    partitions = 1
"""
TABLES = """
    [sink.table]
    from = "people"
    parquet = "table"
    [sink.latest]
    from = "people"
    parquet = "latest"
    upsert = "id"
"""


@pytest.mark.parametrize("sinks", [TOPICS, TABLES], ids=["topics", "tables"])
def test_a_batch_that_comes_again_after_it_was_written_is_no_rows_out(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path, sinks: str
) -> None:
    text = SUMS.partition("[step.sums]")[0] + sinks
    declared = Declared(tmp_path, spark, spark_broker, text.format(topic=topic))
    spark_broker.produce(topic, ['{"id": 1}', '{"id": 2}'])
    assert {rows for _, rows in counts(declared.run()).values()} == {2}
    for commits in (tmp_path / ".pipelines" / topic / "checkpoints").glob("*/commits"):
        last = max(int(path.name) for path in commits.glob("[0-9]*"))
        for left in (commits / str(last), commits / f".{last}.crc"):
            left.unlink(missing_ok=True)
    again = counts(declared.run())
    assert {rows for _, rows in again.values()} == {0}, again
    if sinks is TOPICS:
        assert len(json_values(spark_broker, f"{topic}.copy", 2)) == 2
        assert len(json_values(spark_broker, f"{topic}.sums", 2)) == 2
    else:
        assert len(declared.table("table")) == len(declared.table("latest/current")) == 2


def test_an_edit_that_spark_refuses_leaves_the_pipeline_as_it_was(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Its columns count when a batch was written with them, and not before."""
    text = SUMS.format(topic=topic).replace("partitions = 1", "").replace('key = "id"', 'upsert = "id"')
    text = text.replace(f'topic = "{topic}.sums"', 'parquet = "sums"').replace('mode = "update"', "")
    declared = Declared(tmp_path, spark, spark_broker, text)
    spark_broker.produce(topic, ['{"id": 1, "name": "a"}'])
    declared.run()
    spark_broker.produce(topic, ['{"id": 1, "name": "b"}'])
    was = edited(
        declared,
        "SELECT id, count(*) AS n FROM people GROUP BY id",
        "SELECT id, count(*) AS n, name FROM people GROUP BY id, name",
    )
    told = r"sink sums: the steps that keep state are not those that the checkpoint was made with"
    for go in (dry, Declared.run):
        with pytest.raises(RunFailed, match=told):
            go(declared)
    declared.file.write_text(was)
    dry(declared)
    declared.run()
    assert declared.table("sums/current") == [{"id": 1, "n": 2}]


def test_an_edit_that_fails_in_its_first_batch_leaves_the_columns_as_they_were(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    """A failure that nothing could tell before, when the batch is planned already."""
    text = SUMS.format(topic=topic).replace("SELECT id, count(*) AS n FROM people GROUP BY id", "SELECT id FROM people")
    text = text.replace(f'topic = "{topic}.sums"', 'parquet = "out"').replace('mode = "update"', "")
    text = text.replace("partitions = 1", "").replace('key = "id"', "")
    declared = Declared(tmp_path, spark, spark_broker, text)
    spark_broker.produce(topic, ['{"id": 1}'])
    declared.run()
    spark_broker.produce(topic, ['{"id": 2}'])
    was = edited(declared, "SELECT id FROM", "SELECT id, raise_error('no') AS more FROM")
    with pytest.raises(RunFailed, match="sink sums: no"):
        declared.run()
    declared.file.write_text(was)
    declared.run()
    assert sorted(row["id"] for row in declared.table("out")) == [1, 2]


def test_a_first_run_that_fails_binds_nothing(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Mode append of a group without a watermark: Spark refuses it when the query starts."""
    declared = Declared(tmp_path, spark, spark_broker, SUMS.format(topic=topic))
    spark_broker.produce(topic, ['{"id": 1}'])
    spark_broker.produce(f"{topic}.other", ['{"id": 7}'])
    edited(declared, 'mode = "update"', "")
    with pytest.raises(RunFailed, match="sink sums: "):
        declared.run()
    edited(declared, f'topic = "{topic}"', f'topic = "{topic}.other"')
    edited(declared, f'topic = "{topic}.sums"', f'topic = "{topic}.elsewhere"\n    mode = "update"')
    declared.run()
    assert json_values(spark_broker, f"{topic}.elsewhere", 1) == [{"id": 7, "n": 1}]


def test_a_run_that_was_killed_while_its_first_offsets_were_written_is_gone_on_with(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Spark refuses a checkpoint that holds no batch but a file under way."""
    text = (
        SUMS.format(topic=topic)
        + """
    [bad_records]
    action = "dead-letter"
    """
    )
    declared = Declared(tmp_path, spark, spark_broker, text)
    spark_broker.produce(topic, ['{"id": 1}', "bad"])
    folder = tmp_path / ".pipelines" / topic
    for number, name in enumerate(("sums", "dead-letters")):
        query_id = f"6a3f121b-e0e8-43df-8846-{number:012x}"
        checkpoint = folder / "checkpoints" / name
        for log in ("offsets", "commits"):
            (checkpoint / log).mkdir(parents=True)
        (checkpoint / "metadata").write_text(f'{{"id":"{query_id}"}}')
        (checkpoint / "offsets" / f".0.{query_id}.tmp").touch()
        (checkpoint / "offsets" / f"..0.{query_id}.tmp.crc").touch()
    (folder / "pipeline.json").write_text(
        f'{{"version": 1, "id": "0123456789ab", "name": "{topic}", "sources": {{}}, "sinks": {{"sums": "?"}}}}'
    )
    assert counts(declared.run()) == {"sums": (2, 1), "dead-letters": (2, 1)}
    assert [one.value for one in spark_broker.consume(f"{topic}-dead-letters")] == [b"bad"]


def test_an_inferred_schema_stays_also_when_another_one_was_tried(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    text = SUMS.format(topic=topic).replace('"id INT, name STRING"', '"inferred"')
    declared = Declared(tmp_path, spark, spark_broker, text)
    spark_broker.produce(topic, [Record('{"id": 1, "name": "a"}')])
    declared.run()
    was = edited(declared, '"inferred"', '"id STRING, name STRING"')
    spark_broker.produce(topic, [Record('{"id": 1, "name": "a"}')])
    with pytest.raises(RunFailed, match="the steps that keep state"):
        declared.run()
    declared.file.write_text(was)
    declared.run()
    assert [row["n"] for row in json_values(spark_broker, f"{topic}.sums", 2)] == [1, 2]
