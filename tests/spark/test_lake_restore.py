"""``headpond pipeline restore``: a round trip through a lake gives equal records, once, whatever is interrupted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.client import Client
from headpond.client.admin import Admin, ConfigResource
from headpond.spark.lake import restore as restores
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.restore_state import RestoreFile, RestoreState
from headpond.spark.lake.store import Lake
from headpond.testing import Broker, Record
from spark.lake_support import Pipelines, record, rows_of_topic
from support.internal_client import run_with_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MS = 86_400_000


def archived(pipelines: Pipelines, broker: Broker, topic: str, lake: Path) -> None:
    """40 records on two days in 3 of 4 partitions, with everything that a record can have."""
    broker.create_topic(topic, partitions=4)
    broker.produce(topic, [record(number, number % 3, timestamp_ms=number * DAY_MS // 20) for number in range(40)])
    broker.produce(
        topic,
        [
            Record(None, "tombstone", (), 3 * DAY_MS, 0),
            Record("", "", {"empty": "", "none": None}, 2 * DAY_MS, 0),
            Record(b"\x00\xff", None, [("twice", "1"), ("twice", "2")], DAY_MS, 2),
        ],
    )
    pipelines.json("archive", topic, "--to", str(lake), "--batch-records", "15", "--file-size", "1")


def test_a_round_trip_gives_equal_records(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake, copy = tmp_path / "lake", f"{topic}-copy"
    archived(pipelines, spark_broker, topic, lake)
    plan = pipelines.json("restore", topic, "--from", str(lake), "--as", copy, "--dry-run")
    assert plan["topics"] == [
        {
            "topic": topic,
            "target": copy,
            "is_new_topic": True,
            "is_resumed": False,
            "partitions": 4,
            "offsets": 43,
        }
    ]
    done = pipelines.json("restore", topic, "--from", str(lake), "--as", copy, "--batch-records", "20")
    (row,) = done["topics"]
    assert (row["records"], row["is_created"], row["partitions"]) == (43, True, 4) and row["transactions"] > 1
    assert rows_of_topic(spark_broker, copy) == rows_of_topic(spark_broker, topic)

    async def retention(client: Client) -> str | None:
        (entry,) = await Admin(client).describe_configs(ConfigResource("topic", copy), ["retention.ms"])
        return entry.value

    assert run_with_client(spark_broker.bootstrap_servers, retention) == "-1"

    assert pipelines.json("restore", topic, "--from", str(lake), "--as", copy)["records"] == 0
    spark_broker.produce(topic, [record(100, 3)])
    pipelines.json("archive", topic, "--to", str(lake))
    assert pipelines.json("restore", topic, "--from", str(lake), "--as", copy)["records"] == 1
    assert rows_of_topic(spark_broker, copy) == rows_of_topic(spark_broker, topic)


@pytest.mark.parametrize("moment", ["before the chunk", "after the chunk", "after the end of the second chunk"])
def test_an_interrupted_restore_goes_on_and_writes_nothing_twice(
    pipelines: Pipelines,
    spark_broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    lake, copy = tmp_path / "lake", f"{topic}-copy"
    archived(pipelines, spark_broker, topic, lake)
    command = ("restore", topic, "--from", str(lake), "--as", copy, "--batch-records", "20")
    real = RestoreFile.write

    def interrupted(self: RestoreFile, state: RestoreState) -> None:
        is_done = state.chunk_ends is None
        if moment == "after the chunk" and state.chunk == 1 and is_done:
            raise KeyboardInterrupt
        real(self, state)
        if moment == "before the chunk" and state.chunk == 0 and not is_done:
            raise KeyboardInterrupt
        if moment == "after the end of the second chunk" and state.chunk == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(restores.RestoreFile, "write", interrupted)
    assert pipelines.run(*command)[0] == 130
    monkeypatch.setattr(restores.RestoreFile, "write", real)
    assert pipelines.run(*command)[0] == 0
    assert rows_of_topic(spark_broker, copy) == rows_of_topic(spark_broker, topic)


def test_what_does_not_fit_is_one_sentence_and_nothing_is_written(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    archived(pipelines, spark_broker, topic, lake)
    restore = ("restore", topic, "--from", str(lake))
    assert pipelines.fails(*restore) == (
        f"topic {topic} has records already: --as names another topic, --append writes behind them"
    )
    spark_broker.create_topic(f"{topic}-small", partitions=2)
    assert "has 2 partitions, and" in pipelines.fails(*restore, "--as", f"{topic}-small")
    spark_broker.create_topic(f"{topic}-stamped", partitions=4, message_timestamp_type="LogAppendTime")
    assert "stamps records with its own time" in pipelines.fails(*restore, "--as", f"{topic}-stamped")
    assert pipelines.fails("restore", "nothing", "--from", str(lake)) == (
        f"{lake} does not hold topic nothing: it holds {topic}"
    )
    assert "does not exist" in pipelines.fails("restore", "--from", str(tmp_path / "nowhere"))
    for name in (f"{topic}-small", f"{topic}-stamped"):
        assert spark_broker.consume(name) == []


def test_the_state_may_lie_elsewhere_and_a_topic_made_anew_begins_anew(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake, copy, states = tmp_path / "lake", f"{topic}-copy", tmp_path / "states"
    archived(pipelines, spark_broker, topic, lake)
    command = ("restore", topic, "--from", str(lake), "--as", copy, "--state", str(states))
    assert pipelines.json(*command)["records"] == 43
    (state,) = states.glob("*.json")
    assert json.loads(state.read_text())["records"] == 43 and not (lake / "_lake/restores").exists()

    async def delete(client: Client) -> None:
        await Admin(client).delete_topics([copy])

    run_with_client(spark_broker.bootstrap_servers, delete)
    assert pipelines.json(*command)["records"] == 43
    assert rows_of_topic(spark_broker, copy) == rows_of_topic(spark_broker, topic)


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["in the lake", "where --state says"])
def test_what_is_written_is_staged_where_all_nodes_see_it_and_nothing_of_it_stays(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path, is_elsewhere: bool
) -> None:
    lake, copy, states = tmp_path / "lake", f"{topic}-copy", tmp_path / "states"
    archived(pipelines, spark_broker, topic, lake)
    command = ("restore", topic, "--from", str(lake), "--as", copy, "--batch-records", "20")
    staging = lake / "_lake/restore-staging"
    if is_elsewhere:
        command, staging = (*command, "--state", str(states)), states / "staging"
        states.mkdir()
    staging.write_text("a file, where a folder is needed")
    said = pipelines.fails(*command)
    assert said.startswith(f"the staging folder {staging}/") and "can't be written to" in said
    staging.unlink()
    assert pipelines.json(*command)["records"] == 43
    assert rows_of_topic(spark_broker, copy) == rows_of_topic(spark_broker, topic)
    assert list(staging.iterdir()) == []


def settings_of(broker: Broker, topic: str, copy: str) -> restores.RestoreSettings:
    return restores.RestoreSettings(
        bootstrap=broker.bootstrap_servers,
        api_timeout_ms=15_000,
        topics={topic: copy},
        configs={},
        batch_records=20,
        compression="none",
    )


def test_what_a_killed_restore_has_staged_is_removed_by_the_next_one(
    pipelines: Pipelines, spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake, copy = tmp_path / "lake", f"{topic}-copy"
    archived(pipelines, spark_broker, topic, lake)
    settings = settings_of(spark_broker, topic, copy)
    (planned,) = restores.Restore(lambda: spark, settings, Lake(str(lake)), lambda _: None).plan()
    left = Path(planned.file.staging)
    left.mkdir(parents=True)
    (left / "0-0-of-a-task.batches").touch()
    assert pipelines.json("restore", topic, "--from", str(lake), "--as", copy)["records"] == 43
    assert not left.exists()


def test_a_restore_that_another_process_has_gone_on_with_is_not_begun_again(
    pipelines: Pipelines, spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Both have looked before either has begun; the first is done when the second has its Spark."""
    lake, copy = tmp_path / "lake", f"{topic}-copy"
    archived(pipelines, spark_broker, topic, lake)
    spark_broker.create_topic(copy, partitions=4)
    settings = settings_of(spark_broker, topic, copy)
    late = restores.Restore(lambda: spark, settings, Lake(str(lake)), lambda _: None)
    (planned,) = late.plan()
    assert pipelines.json("restore", topic, "--from", str(lake), "--as", copy)["records"] == 43
    with pytest.raises(LakeError, match="another process has gone on with this restore meanwhile: start it again"):
        late.run(planned)
    assert rows_of_topic(spark_broker, copy) == rows_of_topic(spark_broker, topic)


def test_odd_records_and_empty_topics_make_the_round_trip(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake, empty = tmp_path / "lake", f"{topic}-empty"
    last_day_ms = 253_402_300_799_999  # of the year 9999
    future = {"message.timestamp.after.max.ms": "9223372036854775807"}
    spark_broker.create_topic(topic, message_timestamp_after_max_ms=future["message.timestamp.after.max.ms"])
    spark_broker.create_topic(empty, partitions=2)
    spark_broker.produce(
        topic,
        [
            Record("before the first", "k", (), -5),
            Record("before any calendar", "k", (), -62_135_596_800_001),
            Record("first of all", "k", (), 0),
            Record("last of all", "k", (), last_day_ms),
            Record(None, None, [(f"h{number}", "x" * 200) for number in range(2_000)], 1),
            Record("", "", [("", "")], 2),
        ],
    )
    pipelines.json("archive", topic, empty, "--to", str(lake))
    dates = sorted(each.name for each in (lake / f"topic={topic}").iterdir())
    assert dates == ["date=0001-01-01", "date=1969-12-31", "date=1970-01-01", "date=9999-12-31"]
    command = ("restore", "--from", str(lake), topic, "--as", f"{topic}-copy")
    assert "timestamp" in pipelines.fails(*command).lower()
    assert spark_broker.consume(f"{topic}-copy") == []

    async def delete(client: Client) -> None:
        await Admin(client).delete_topics([f"{topic}-copy", empty])

    run_with_client(spark_broker.bootstrap_servers, delete)
    ((name, value),) = future.items()
    assert pipelines.json(*command, "--config", f"{name}={value}")["records"] == 6
    assert rows_of_topic(spark_broker, f"{topic}-copy") == rows_of_topic(spark_broker, topic)
    done = pipelines.json("restore", "--from", str(lake), empty)
    assert [(one["records"], one["is_created"], one["partitions"]) for one in done["topics"]] == [(0, True, 2)]
