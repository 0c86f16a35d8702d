"""What a run refuses, each in one sentence, and that nothing is written then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.client import BrokerUnreachable, Client
from headpond.client.admin import Admin
from headpond.model import TopicPartition
from headpond.spark.pipeline.failures import RunBusy, RunFailed, WrongFolder
from headpond.spark.pipeline.load import load_pipeline
from headpond.testing import Broker, Record
from spark.pipelines import Declared
from support.internal_client import run_with_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COPY = """
    name = "{topic}"
    [source.events]
    topic = "{topic}"
    format = "json"
    schema = "id INT, name STRING"
    [step.few]
    sql = '''
        SELECT id, name
        FROM events
        WHERE id > 0
    '''
    [sink.out]
    from = "few"
    parquet = "out"
"""


@pytest.fixture
def declared(spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path) -> Declared:
    """One that reads one topic and appends to one table."""
    spark_broker.produce(topic, [Record('{"id": 1, "name": "a"}')])
    return Declared(tmp_path, spark, spark_broker, COPY.format(topic=topic))


def sentence(declared: Declared, kind: type[Exception] = RunFailed) -> str:
    with pytest.raises(kind) as caught:
        declared.run()
    return str(caught.value).replace(f"{declared.folder}/", "")


def changed(declared: Declared, before: str, after: str) -> None:
    text = declared.file.read_text()
    assert before in text
    declared.file.write_text(text.replace(before, after))


def left_behind(declared: Declared) -> list[Path]:
    return [path for path in declared.folder.rglob("*") if path != declared.file]


def test_a_topic_that_is_not_there_is_missed_before_spark_is_asked(declared: Declared, topic: str) -> None:
    changed(declared, f'topic = "{topic}"', f'topic = "{topic}x"')
    assert sentence(declared) == (
        f"pipeline.toml:3: source events: topic {topic}x does not exist (did you mean {topic}?)"
    )
    assert left_behind(declared) == []


def test_a_topic_to_write_to_that_is_not_there_is_missed(declared: Declared, topic: str) -> None:
    changed(declared, 'parquet = "out"', f'topic = "{topic}.missing"')
    assert sentence(declared).startswith(f"pipeline.toml:13: sink out: topic {topic}.missing does not exist")


def test_a_broker_that_is_not_there_is_told(declared: Declared) -> None:
    from headpond.spark.pipeline.runner import Runner

    runner = Runner(load_pipeline(str(declared.file)), "127.0.0.1:1", timeout_s=5)
    with runner, pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"):
        runner.survey()


def test_mistakes_of_sql_that_only_spark_finds_have_their_line(declared: Declared) -> None:
    changed(declared, "WHERE id > 0", "WHERE ide > 0")
    assert sentence(declared).startswith(
        "pipeline.toml:11: step few: A column, variable, or function parameter with name `ide`"
    )
    changed(declared, "WHERE ide > 0", "WHERE id >> > 0")
    assert sentence(declared).startswith("pipeline.toml:11: step few: Syntax error at or near '>'")
    assert left_behind(declared) == []


def test_columns_that_are_not_there_are_missed(declared: Declared, topic: str) -> None:
    changed(declared, 'parquet = "out"', f'topic = "{topic}.out"\n    partitions = 1\n    key = "nam"')
    assert sentence(declared) == (
        "pipeline.toml:13: sink out: key is 'nam', and few has no such column (did you mean name?)"
    )


def test_a_bad_record_fails_the_run_with_its_place_and_nothing_of_its_batch_is_written(
    declared: Declared, spark_broker: Broker, topic: str
) -> None:
    declared.run()
    spark_broker.produce(topic, ['{"id": 2}', '{"id": "x"}'])
    assert sentence(declared) == (
        f"pipeline.toml:13: sink out: source events: the record at offset 2 of {topic}-0 can't be read: "
        "the value does not fit the schema: id is no int"
    )
    assert [row["id"] for row in declared.table("out")] == [1]
    status = json.loads((declared.folder / ".pipelines" / topic / "status.json").read_text())
    assert (status["state"], "can't be read" in status["reason"]) == ("failed", True)


def test_a_checkpoint_of_another_pipeline_is_refused(declared: Declared, topic: str, spark_broker: Broker) -> None:
    declared.run()
    changed(declared, f'name = "{topic}"', f'name = "other"\nfolder = ".pipelines/{topic}"')
    assert sentence(declared, WrongFolder).startswith(
        f".pipelines/{topic} is the folder of pipeline {topic}, not of other: give the pipeline another name or folder"
    )
    declared.write(COPY.format(topic=topic))
    spark_broker.create_topic(f"{topic}.b")
    changed(declared, f'topic = "{topic}"', f'topics = ["{topic}", "{topic}.b"]')
    assert (
        f"source events became 'stream of {topic}, {topic}.b as json' (it was 'stream of {topic} as json') since"
        in sentence(declared, WrongFolder)
    )
    declared.write(COPY.format(topic=topic))
    changed(declared, 'parquet = "out"', 'parquet = "elsewhere"')
    assert "sink out became" in sentence(declared, WrongFolder)


def test_a_table_whose_columns_change_is_refused(declared: Declared) -> None:
    declared.run()
    changed(declared, "SELECT id, name", "SELECT CAST(id AS STRING) AS id, name")
    assert sentence(declared, WrongFolder) == (
        "pipeline.toml:13: sink out: the schema has changed, column id was int and is string now: "
        "give the sink another name and folder"
    )
    changed(declared, "SELECT CAST(id AS STRING) AS id, name", "SELECT id")
    assert "column name is gone" in sentence(declared, WrongFolder)


def test_state_that_does_not_fit_the_steps_any_more_is_told(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, [Record('{"id": 1, "name": "a"}')])
    text = COPY.format(topic=topic).replace('parquet = "out"', 'console = true\n    mode = "update"')
    declared = Declared(tmp_path, spark, spark_broker, text)
    changed(declared, "WHERE id > 0", "GROUP BY id, name")
    declared.run()
    changed(declared, "SELECT id, name", "SELECT id, count(*) AS n")
    changed(declared, "GROUP BY id, name", "GROUP BY id")
    spark_broker.produce(topic, [Record('{"id": 1, "name": "a"}')])
    assert sentence(declared).startswith(
        "pipeline.toml:13: sink out: the steps that keep state are not those that the checkpoint was made with"
    )


def test_a_table_of_another_query_is_refused(declared: Declared, topic: str) -> None:
    declared.run()
    (declared.folder / ".pipelines" / topic).rename(declared.folder / "moved")
    assert sentence(declared, WrongFolder) == (
        "pipeline.toml:13: sink out: out was written by another query: give the sink another folder, or remove that one"
    )


def removed_after_two_runs(declared: Declared, spark_broker: Broker, topic: str) -> Path:
    """Where the sink's checkpoint was; in ``backup`` it is as it was after the first run."""
    checkpoint = declared.folder / ".pipelines" / topic / "checkpoints" / "out"
    declared.run()
    shutil.copytree(checkpoint, declared.folder / "backup")
    spark_broker.produce(topic, ['{"id": 2}'])
    declared.run()
    shutil.rmtree(checkpoint)
    return checkpoint


def test_a_checkpoint_that_was_set_back_does_not_leave_out_what_a_table_has_not_got(
    declared: Declared, spark_broker: Broker, topic: str
) -> None:
    """Spark takes every batch with a number that the table has for written, whatever it holds now."""
    checkpoint = removed_after_two_runs(declared, spark_broker, topic)
    (declared.folder / "backup").rename(checkpoint)
    spark_broker.produce(topic, ['{"id": 3}'])
    assert "and the checkpoint knows none after" in sentence(declared, WrongFolder)
    assert sorted(row["id"] for row in declared.table("out")) == [1, 2]


def test_a_checkpoint_that_was_set_back_does_not_leave_out_what_a_table_with_upsert_has_not_got(
    declared: Declared, spark_broker: Broker, topic: str
) -> None:
    from headpond.spark.pipeline.upsert import make_upsert

    changed(declared, 'parquet = "out"', 'parquet = "out"\n    upsert = "id"')
    checkpoint = removed_after_two_runs(declared, spark_broker, topic)
    spark_broker.produce(topic, ['{"id": 3}'])
    assert sentence(declared, WrongFolder) == (
        "pipeline.toml:13: sink out: out holds batch 2, and the checkpoint knows none: it was set back; "
        "use the newest checkpoint, or give the sink another name and folder"
    )
    (declared.folder / "backup").rename(checkpoint)
    assert "out holds batch 2, and the checkpoint knows none after 1" in sentence(declared, WrongFolder)
    version = (declared.folder / "out" / "current").readlink().name
    batch = declared.spark.sql("SELECT 3 AS id, 'c' AS name")
    with pytest.raises(RunFailed, match="it was set back"):  # though nobody has looked before
        make_upsert(load_pipeline(str(declared.file)).sinks[0], version.rpartition("-")[0])(batch, 1)
    assert sorted(row["id"] for row in declared.table("out/current")) == [1, 2]


def test_a_sink_that_went_and_comes_back_must_be_the_same(declared: Declared, topic: str) -> None:
    changed(declared, 'parquet = "out"', 'parquet = "out"\n    [sink.second]\n    from = "few"\n    parquet = "second"')
    declared.run()
    declared.write(COPY.format(topic=topic))
    declared.run()
    for other in (f'topic = "{topic}.second"\n    partitions = 1', 'parquet = "second"\n    upsert = "id"'):
        declared.write(COPY.format(topic=topic) + f'[sink.second]\n    from = "few"\n    {other}\n')
        assert "sink second became" in sentence(declared, WrongFolder)
    declared.write(COPY.format(topic=topic) + '[sink.second]\n    from = "few"\n    parquet = "second"\n')
    declared.run()


def test_what_a_killed_run_left_in_a_table_is_swept(declared: Declared, spark_broker: Broker, topic: str) -> None:
    declared.run()
    known = set((declared.folder / "out").glob("*.parquet"))
    left = declared.folder / "out" / "part-left.snappy.parquet"
    left.write_bytes(next(iter(known)).read_bytes())
    spark_broker.produce(topic, ['{"id": 2}'])
    declared.run()
    files = set((declared.folder / "out").glob("*.parquet"))
    assert left not in files and known < files


def test_deleted_offsets_are_told(declared: Declared, spark_broker: Broker, topic: str) -> None:
    declared.run()
    spark_broker.produce(topic, ['{"id": 2}', '{"id": 3}'])

    async def delete(client: Client) -> None:
        await Admin(client).delete_records({TopicPartition(topic, 0): 2})

    run_with_client(spark_broker.bootstrap_servers, delete)
    assert sentence(declared) == (
        f"pipeline.toml:13: sink out: records may have been missed: {topic}-0: offset 1 is not in the log, "
        "which begins at 2; set failOnDataLoss to false to go on with what is there"
    )
    changed(declared, 'format = "json"', 'format = "json"\n    options.failOnDataLoss = false')
    declared.run()
    assert sorted(row["id"] for row in declared.table("out")) == [1, 3]


def test_a_pipeline_runs_once_at_a_time(declared: Declared, topic: str) -> None:
    from headpond.spark.pipeline.runner import Runner

    busy = f"pipeline {topic} is running already"

    def start_another(figures: object) -> None:
        assert sentence(declared, RunBusy).startswith(busy)

    declared.run(watch=start_another)
    with Runner(load_pipeline(str(declared.file)), declared.broker.bootstrap_servers) as slow:
        slow.survey()
        plan = slow.plan(declared.spark)

        def go_on(figures: object) -> None:
            with pytest.raises(RunBusy, match=busy):
                slow.run(declared.spark, plan, show=lambda *_: None, watch=lambda _: None)

        declared.run(watch=go_on)
    declared.run()


def test_a_run_that_was_planned_before_another_one_began_the_folder_is_refused(declared: Declared, topic: str) -> None:
    from headpond.spark.pipeline.runner import Runner

    with Runner(load_pipeline(str(declared.file)), declared.broker.bootstrap_servers) as slow:
        slow.survey()
        plan = slow.plan(declared.spark)
        declared.run()
        with pytest.raises(RunBusy, match=f"pipeline {topic} was run by another process meanwhile: run it again"):
            slow.run(declared.spark, plan, show=lambda *_: None, watch=lambda _: None)
    declared.run()
    assert [row["id"] for row in declared.table("out")] == [1]


def test_secrets_are_in_no_message_no_plan_and_no_file(
    declared: Declared, spark_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headpond.spark.pipeline.runner import Runner

    monkeypatch.setenv("KEY_OF_THE_DOOR", "hunter2-hunter2")
    declared.file.write_text(
        declared.file.read_text() + '\n[broker.options]\nsasl.jaas.config = "password=${KEY_OF_THE_DOOR}"\n'
    )
    with Runner(load_pipeline(str(declared.file)), spark_broker.bootstrap_servers) as runner:
        runner.survey()
        plan = runner.plan(declared.spark)
        frame = plan.outputs[0].frame
        assert "hunter2" not in frame._jdf.queryExecution().toString()
        runner.run(declared.spark, plan, show=lambda *_: None, watch=lambda _: None)
    spark_broker.produce(topic, ['{"id": "hunter2-hunter2"}'])
    assert "hunter2" not in sentence(declared)
    for file in declared.folder.rglob("*"):
        if file.is_file() and file.suffix != ".parquet":
            assert b"hunter2" not in file.read_bytes(), file
