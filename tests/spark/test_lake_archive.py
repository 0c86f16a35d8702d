"""``headpond pipeline archive``: each record once, in a table that everybody can read; and what it refuses."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.client import Client
from headpond.client.admin import Admin
from headpond.testing import Broker, Record
from spark.lake_support import Pipelines, record, rows_of_lake, rows_of_topic
from support.internal_client import run_with_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MS = 86_400_000


def test_a_topic_is_a_table_and_a_second_run_takes_what_is_new(
    pipelines: Pipelines, spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    spark_broker.create_topic(topic, partitions=3)
    spark_broker.produce(topic, [record(number, number % 3) for number in range(60)])
    spark_broker.produce(topic, [Record(None, "gone", (), DAY_MS, 1), Record(b"\xff\x00", None, (), 5 * DAY_MS, 2)])
    plan = pipelines.json("archive", topic, "--to", str(lake), "--dry-run")
    assert plan["offsets"] == 62 and not lake.exists()

    said = pipelines.json("archive", topic, "--to", str(lake))
    assert (said["records"], said["topics"][0]["files_new"], said["topics"][0]["files_grown"]) == (62, 3, 0)
    assert rows_of_lake(lake, topic) == rows_of_topic(spark_broker, topic)
    assert sorted(each.name for each in (lake / f"topic={topic}").iterdir()) == [
        "date=1970-01-02",
        "date=1970-01-06",
        "date=2026-01-01",
    ]

    spark_broker.produce(topic, [record(number, number % 3) for number in range(60, 90)])
    said = pipelines.json("archive", topic, "--to", str(lake))
    assert (said["records"], said["topics"][0]["files_new"], said["topics"][0]["files_grown"]) == (30, 0, 1)
    assert said["topics"][0]["records_in_lake"] == 92
    assert rows_of_lake(lake, topic) == rows_of_topic(spark_broker, topic)
    assert pipelines.json("archive", topic, "--to", str(lake))["commits"] == 0

    table = spark.read.parquet(str(lake)).where(f"topic = '{topic}'")
    assert table.count() == 92
    assert sorted(table.columns) == sorted(
        ["key", "value", "headers", "partition", "offset", "timestamp", "timestampType", "topic", "date"]
    )
    assert table.where("date = DATE '2026-01-01'").count() == 90
    import pandas as pd

    assert len(pd.read_parquet(lake / f"topic={topic}")) == 92
    assert len(pd.read_parquet(lake)) == 92


def test_times_that_microseconds_cant_count_become_the_nearest_that_they_can(
    pipelines: Pipelines, spark_broker: Broker, topic: str, spark: SparkSession, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    last_ms = (2**63 - 1) // 1000
    lake, table = tmp_path / "lake", tmp_path / "table"
    spark_broker.create_topic(topic, message_timestamp_after_max_ms=str(2**63 - 1))
    times_ms = [2**63 - 1, last_ms + 1, last_ms, DAY_MS, -last_ms, -last_ms - 1, -(2**63)]
    for number, time_ms in enumerate(times_ms):
        spark_broker.produce(topic, [Record(f"{number}", f"{number}", (), time_ms)])
    nearest_us = [min(max(time_ms, -last_ms), last_ms) * 1000 for time_ms in times_ms]

    assert pipelines.json("archive", topic, "--to", str(lake))["records"] == len(times_ms)
    assert pipelines.json("snapshot", topic, "--to", str(table))["keys"] == len(times_ms)
    for parquet in (lake / f"topic={topic}", table):
        rows = pq.read_table(parquet, columns=["offset", "timestamp"], partitioning=None)
        times_us = rows["timestamp"].combine_chunks().cast(pa.timestamp("us")).view(pa.int64())
        assert dict(zip(rows["offset"].to_pylist(), times_us.to_pylist(), strict=True)) == dict(enumerate(nearest_us))
    assert sorted(each.name for each in (lake / f"topic={topic}").iterdir()) == [
        "date=0001-01-01",
        "date=1970-01-02",
        "date=9999-12-31",
    ]
    assert pipelines.json("audit", topic, "--against-lake", str(lake))  # exits with 1 where both differ
    read = spark.read.format("headpond").option("kafka.bootstrap.servers", spark_broker.bootstrap_servers)
    seen = read.option("subscribe", topic).load().selectExpr("unix_micros(timestamp) us").orderBy("offset").collect()
    assert [row.us for row in seen] == nearest_us


def test_duckdb_reads_the_lake(pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    spark_broker.produce(topic, [record(number) for number in range(10)])
    pipelines.json("archive", topic, "--to", str(tmp_path / "lake"))
    for pattern in ("*/*/*.parquet", "**/*.parquet", f"topic={topic}/*/*.parquet"):
        found = duckdb.sql(
            f"select count(*), min(\"offset\"), max(date), max(headers[1].key) from '{tmp_path}/lake/{pattern}'"
        ).fetchall()
        assert found[0][:2] == (10, 0) and str(found[0][2]) == "2026-01-01" and found[0][3] == "n"


def test_transactions_are_archived_as_consumers_see_them(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    from confluent_kafka import Producer

    spark_broker.create_topic(topic)
    producer = Producer({"bootstrap.servers": spark_broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce(topic, f"{number}")
        producer.flush(30)
        (producer.commit_transaction if number % 2 else producer.abort_transaction)(30)
    said = pipelines.json("archive", topic, "--to", str(tmp_path / "lake"))
    assert (said["records"], said["topics"][0]["skipped_offsets"]) == (2, 6)
    assert [row[2] for row in rows_of_lake(tmp_path / "lake", topic)] == [b"1", b"3"]


def test_many_commits_new_partitions_and_several_topics(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    names = [f"{topic}-a", f"{topic}-b", f"{topic}-empty"]
    for name in names:
        spark_broker.create_topic(name, partitions=2)
    for name in names[:2]:
        spark_broker.produce(name, [record(number, number % 2) for number in range(40)])
    pattern = ("--pattern", f"{topic}-.*")
    said = pipelines.json("archive", *pattern, "--to", str(lake), "--batch-records", "25", "--file-size", "1")
    assert said["records"] == 80 and said["commits"] > 3
    assert sum(row["files_new"] for row in said["topics"]) > 6, "no file of a byte is small enough to grow"

    async def grow(client: Client) -> None:
        await Admin(client).create_partitions(names[0], 3)

    run_with_client(spark_broker.bootstrap_servers, grow)
    spark_broker.produce(names[0], [record(100, 2)])
    assert pipelines.json("archive", *pattern, "--to", str(lake))["records"] == 1
    for name in names[:2]:
        assert rows_of_lake(lake, name) == rows_of_topic(spark_broker, name)
    states = {name: json.loads((lake / f"_lake/topics/{name}.json").read_text()) for name in names}
    assert sorted(states[names[0]]["partitions"]) == ["0", "1", "2"]
    assert sorted(states[names[2]]["partitions"]) == ["0", "1"], "an empty topic is known, with its partitions"
    assert spark_broker_lag(spark_broker, "archive-lake", names[0]) == 0


def spark_broker_lag(broker: Broker, group: str, topic: str) -> int:
    from headpond.client.group_admin import Groups

    async def ask(client: Client) -> int:
        offsets = await Groups(client).offsets(group)
        records = {0: 20, 1: 20, 2: 1}
        return sum(records[tp.partition] - one.offset for tp, one in offsets.items() if tp.topic == topic)

    return int(run_with_client(broker.bootstrap_servers, ask))


def test_a_reader_at_work_sees_each_record_once_and_none_go(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    spark_broker.create_topic(topic, partitions=2)
    faults: list[str] = []
    looks: list[int] = []
    is_over = threading.Event()

    def look() -> None:
        import pyarrow.parquet as pq

        seen: set[tuple[int, int]] = set()
        while not is_over.is_set():
            if not (lake / f"topic={topic}").exists():
                continue
            table = pq.read_table(lake / f"topic={topic}", columns=["partition", "offset"]).to_pylist()
            places = [(row["partition"], row["offset"]) for row in table]
            if len(places) != len(set(places)):
                faults.append("twice")
            if not seen <= set(places):
                faults.append(f"gone: {sorted(seen - set(places))[:3]}")
            seen = set(places)
            looks.append(len(seen))

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for run in range(4):
            spark_broker.produce(topic, [record(number, number % 2) for number in range(run * 50, run * 50 + 50)])
            pipelines.json("archive", topic, "--to", str(lake), "--batch-records", "20")
    finally:
        is_over.set()
        reader.join()
    assert faults == [] and len(set(looks)) > 2
    assert rows_of_lake(lake, topic) == rows_of_topic(spark_broker, topic)


def test_what_can_not_be_continued_is_one_sentence(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    spark_broker.create_topic(topic)
    spark_broker.produce(topic, [record(number) for number in range(10)])
    pipelines.json("archive", topic, "--to", str(lake))

    assert pipelines.fails("archive", f"{topic}x", "--to", str(lake)) == (
        f"topic {topic}x does not exist (did you mean {topic}?)"
    )
    assert pipelines.fails("archive", "--pattern", "no-.*", "--to", str(lake)) == "no topic matches no-.*"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    assert "is no lake, and holds notes.txt" in pipelines.fails("archive", topic, "--to", str(tmp_path / "full"))

    state_file = lake / f"_lake/topics/{topic}.json"
    state = json.loads(state_file.read_text())
    state_file.write_text(json.dumps({**state, "cluster_id": "elsewhere"}))
    assert "of another cluster (elsewhere" in pipelines.fails("archive", topic, "--to", str(lake))
    state_file.write_text(json.dumps(state))

    async def delete_records(client: Client) -> None:
        from headpond.model import TopicPartition

        await Admin(client).delete_records({TopicPartition(topic, 0): 12})

    spark_broker.produce(topic, [record(number) for number in range(10, 15)])
    run_with_client(spark_broker.bootstrap_servers, delete_records)
    said = pipelines.fails("archive", topic, "--to", str(lake))
    assert said == (
        f"offsets 10 to 11 of {topic}-0 were deleted before they were archived: --allow-data-loss goes on without them"
    )
    done = pipelines.json("archive", topic, "--to", str(lake), "--allow-data-loss")
    assert (done["records"], done["topics"][0]["lost_offsets"]) == (3, 2)
    assert json.loads(state_file.read_text())["holes"] == [[0, 10, 12]]

    async def make_anew(client: Client) -> None:
        await Admin(client).delete_topics([topic])
        await Admin(client).create_topic(topic, 1)

    run_with_client(spark_broker.bootstrap_servers, make_anew)
    assert "was deleted and created again" in pipelines.fails("archive", topic, "--to", str(lake), "--allow-data-loss")


def test_a_failure_in_a_task_is_one_sentence_and_the_lake_stays_as_it_was(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    spark_broker.produce(topic, [record(0)])
    pipelines.json("archive", topic, "--to", str(lake))
    before = (lake / f"_lake/topics/{topic}.json").read_bytes()
    (file,) = (lake / f"topic={topic}").glob("*/*.parquet")
    content = file.read_bytes()
    file.write_bytes(b"no parquet")
    spark_broker.produce(topic, [record(1)])
    said = pipelines.fails("archive", topic, "--to", str(lake))
    assert "Parquet magic bytes not found" in said
    assert (lake / f"_lake/topics/{topic}.json").read_bytes() == before
    file.write_bytes(content)
    assert pipelines.json("archive", topic, "--to", str(lake))["records"] == 1
    assert rows_of_lake(lake, topic) == rows_of_topic(spark_broker, topic)
