"""Runs of declared pipelines in Spark itself: steps, windows, joins, tables, and going on after an end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.client import Client
from headpond.client.group_admin import Groups
from headpond.model import TopicPartition
from headpond.testing import Broker, Record
from spark.pipelines import Declared, counts, json_values
from support.internal_client import run_with_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"


@pytest.fixture(autouse=True)
def windows_close_without_more_data(spark: SparkSession) -> Iterator[None]:
    """As in a session that is made for a pipeline."""
    before = spark.conf.get(NO_DATA)
    spark.conf.set(NO_DATA, "true")
    yield
    spark.conf.set(NO_DATA, before)


def event(**fields: object) -> Record:
    key = fields.get("user") or fields.get("id")
    return Record(json.dumps(fields), key=str(key))


def test_sql_and_python_steps_lead_to_a_topic_and_the_next_run_goes_on(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [event(user=f"u{n}", n=n) for n in range(6)])
    declared = Declared(
        tmp_path,
        spark,
        spark_broker,
        f"""
        name = "{topic}"
        [source.events]
        topic = "{topic}"
        format = "json"
        schema = "user STRING, n INT"
        [step.even]
        sql_file = "even.sql"
        [step.doubled]
        python = "steps.py:doubled"
        [sink.out]
        from = "doubled"
        topic = "{topic}.out"
        partitions = 3
        key = "user"
        """,
        even__sql="-- every other one\nSELECT user, n FROM events WHERE n % 2 = 0;\n",
        steps__py="""
            def doubled(even, spark):
                assert spark is not None
                return even.selectExpr("user", "n * 2 AS n")
        """,
    )
    assert counts(declared.run()) == {"out": (6, 3)}
    spark_broker.produce(topic, [event(user="u8", n=8)])
    assert counts(declared.run()) == {"out": (1, 1)}
    found = sorted(json_values(spark_broker, f"{topic}.out", 4), key=lambda row: row["n"])
    assert found == [{"user": f"u{n}", "n": n * 2} for n in (0, 2, 4, 8)]

    async def committed(client: Client) -> int:
        offsets = await Groups(client).offsets(topic)
        return sum(offsets[TopicPartition(topic, number)].offset for number in (0, 1))

    assert run_with_client(spark_broker.bootstrap_servers, committed) == 7
    status = json.loads((tmp_path / ".pipelines" / topic / "status.json").read_text())
    assert (status["state"], status["queries"][0]["rows_read"], status["queries"][0]["lag"]) == ("done", 1, 0)


def test_windows_close_behind_the_watermark_and_streams_are_joined(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    payments, clicks = f"{topic}.payments", f"{topic}.clicks"
    spark_broker.produce(
        clicks, [event(user="anna", at="2026-01-01T10:00:00Z"), event(user="bob", at="2026-01-01T10:00:00Z")]
    )
    spark_broker.produce(
        payments,
        [
            event(user="anna", paid=5, at="2026-01-01T10:03:00Z"),
            event(user="anna", paid=7, at="2026-01-01T10:04:00Z"),
            event(user="bob", paid=9, at="2026-01-01T11:00:00Z"),
        ],
    )
    declared = Declared(
        tmp_path,
        spark,
        spark_broker,
        f"""
        name = "{topic}"
        [source.clicks]
        topic = "{clicks}"
        format = "json"
        schema = "user STRING, at TIMESTAMP"
        watermark = {{ column = "at", delay = "5 minutes" }}
        [source.payments]
        topic = "{payments}"
        format = "json"
        schema = "user STRING, paid INT, at TIMESTAMP"
        watermark = {{ column = "at", delay = "5 minutes" }}
        [step.sums]
        sql = '''
            SELECT user, sum(paid) AS paid, date_format(window.start, 'HH:mm') AS since
            FROM payments GROUP BY user, window(at, '10 minutes')
        '''
        [step.followed]
        sql = '''
            SELECT c.user, p.paid FROM clicks c JOIN payments p
            ON c.user = p.user AND p.at BETWEEN c.at AND c.at + INTERVAL 10 MINUTES
        '''
        [sink.sums]
        from = "sums"
        topic = "{topic}.sums"
        partitions = 1
        [sink.followed]
        from = "followed"
        console = true
        """,
    )
    figures = counts(declared.run())
    assert figures["sums"][1] == 1  # bob's window is open
    assert json_values(spark_broker, f"{topic}.sums", 1) == [{"user": "anna", "paid": 12, "since": "10:00"}]
    assert sorted(tuple(row) for row in declared.shown) == [("anna", 5), ("anna", 7)]


LATEST = """
    name = "{topic}"
    [source.events]
    topic = "{topic}"
    format = "json"
    schema = "user STRING"
    [source.users]
    topic = "{users}"
    read = "latest"
    format = "json"
    schema = "name STRING"
    [step.named]
    sql = "SELECT e.user, u.name FROM events e LEFT JOIN users u ON u._key <=> e.user"
    [sink.out]
    from = "named"
    parquet = "named"
"""


def test_a_stream_is_joined_with_the_latest_of_a_compacted_topic(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    users = f"{topic}.users"
    spark_broker.produce(
        users,
        [
            Record('{"name": "Anna"}', key="a"),
            Record('{"name": "Bob"}', key="b"),
            Record('{"name": "Anne"}', key="a"),
            Record(None, key="b"),
            Record('{"name": "Nobody"}'),
        ],
    )
    spark_broker.produce(topic, [event(user="a"), event(user="b"), event(user=None)])
    declared = Declared(tmp_path, spark, spark_broker, LATEST.format(topic=topic, users=users))
    declared.run()
    assert {row["user"]: row["name"] for row in declared.table("named")} == {"a": "Anne", "b": None, None: None}
    spark_broker.produce(users, [Record('{"name": "Bert"}', key="b")])
    spark_broker.produce(topic, [event(user="b")])
    declared.run()
    assert ("b", "Bert") in [(row["user"], row["name"]) for row in declared.table("named")]


def test_a_key_that_moved_to_another_partition_has_its_latest_value(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    def named(name: str, partition: int, second: int) -> Record:
        time_ms = 1_767_225_600_000 + second * 1_000
        return Record(json.dumps({"name": name}), name[0].lower(), (), time_ms, partition)

    users = f"{topic}.users"
    spark_broker.create_topic(users, partitions=2)
    spark_broker.produce(users, [named(name, 0, 1) for name in ("Ann", "Anna", "Bob")])
    spark_broker.produce(users, [named("Anne", 1, 2)])
    spark_broker.produce(topic, [event(user="a"), event(user="b")])
    declared = Declared(tmp_path, spark, spark_broker, LATEST.format(topic=topic, users=users))
    declared.run()
    assert {row["user"]: row["name"] for row in declared.table("named")} == {"a": "Anne", "b": "Bob"}


UPSERT = """
    name = "{topic}"
    [source.changes]
    topic = "{topic}"
    format = "json"
    schema = "id INT, op STRING, city STRING"
    [sink.customers]
    from = "changes"
    parquet = "customers"
    upsert = "id"
    delete_when = "op = 'd'"
"""


def test_upserts_leave_one_row_for_each_key_and_take_deleted_ones_out(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    declared = Declared(tmp_path, spark, spark_broker, UPSERT.format(topic=topic))
    spark_broker.produce(
        topic,
        [
            event(id=1, op="c", city="Rome"),
            event(id=2, op="c", city="Oslo"),
            event(id=1, op="u", city="Bern"),
            event(id=3, op="c", city="Lima"),
        ],
    )
    declared.run()
    assert {row["id"]: row["city"] for row in declared.table("customers/current")} == {1: "Bern", 2: "Oslo", 3: "Lima"}
    spark_broker.produce(
        topic, [event(id=2, op="d"), event(id=3, op="u", city="Cusco"), event(id=4, op="c", city="Kyiv")]
    )
    declared.run()
    rows = declared.table("customers/current")
    assert {row["id"]: row["city"] for row in rows} == {1: "Bern", 3: "Cusco", 4: "Kyiv"}
    assert set(rows[0]) == {"id", "op", "city"}


@pytest.mark.parametrize("order", ["lsn", "_timestamp"])
@pytest.mark.parametrize("batch_rows", [100, 1], ids=["one batch", "a batch for each"])
def test_the_last_row_of_a_key_is_the_last_wherever_batches_are_cut(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path, batch_rows: int, order: str
) -> None:
    def change(number: int | None, id: int | None, op: str, city: str | None = None) -> Record:
        value = json.dumps({"id": id, "op": op, "city": city, "lsn": number})
        return Record(value, timestamp_ms=1_767_225_600_000 + (number or 0), partition=0)

    columns = f'lsn INT"\n    options = {{ maxOffsetsPerTrigger = {batch_rows} }}'
    text = UPSERT.format(topic=topic).replace('city STRING"', f"city STRING, {columns}")
    declared = Declared(tmp_path, spark, spark_broker, text + f'    order_by = "{order}"\n')
    changes = [
        change(7, 1, "c", "Rome"),
        change(5, 1, "u", "older than Rome"),
        change(7, 2, "c", "Oslo"),
        change(6, 2, "d"),
        change(7, 3, "c", "as old as Lima, and read before"),
        change(7, 3, "u", "Lima"),
        change(None, 4, "c", "of no order"),
        change(8, 5, "c", "Bern"),
        change(None, 5, "u", "of no order, so before Bern"),
        change(1, None, "c", "Atlantis"),
        change(2, None, "u", "Nowhere"),
    ]
    spark_broker.produce(topic, changes)
    declared.run()
    cities = [(row["id"], row["city"]) for row in declared.table("customers/current")]
    assert sorted(cities, key=str) == [
        (1, "Rome"),
        (2, "Oslo"),
        (3, "Lima"),
        (4, "of no order"),
        (5, "Bern"),
        (None, "Nowhere"),
    ]


def test_a_batch_that_comes_again_after_its_upsert_was_made_changes_nothing(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    declared = Declared(tmp_path, spark, spark_broker, UPSERT.format(topic=topic))
    spark_broker.produce(topic, [event(id=1, op="c", city="Rome")])
    declared.run()
    before = (tmp_path / "customers" / "current").readlink()
    commits = tmp_path / ".pipelines" / topic / "checkpoints" / "customers" / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    for left in (commits / str(last), commits / f".{last}.crc"):
        left.unlink(missing_ok=True)
    declared.run()
    assert (tmp_path / "customers" / "current").readlink() == before
    assert len(declared.table("customers/current")) == 1


def test_what_a_killed_run_has_left_in_a_table_goes_and_nothing_else(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    text = f"""
        name = "{topic}"
        [source.events]
        topic = "{topic}"
        format = "json"
        schema = "n INT, day STRING"
        options = {{ maxOffsetsPerTrigger = 1 }}
        [sink.out]
        from = "events"
        parquet = "table"
        partition_by = "day"
    """
    declared = Declared(tmp_path, spark, spark_broker, text)
    spark_broker.produce(topic, [event(n=n, day=f"{n % 2} %:") for n in range(12)])
    declared.run()
    table = tmp_path / "table"
    assert list((table / "_spark_metadata").glob("*.compact")), "batches enough for Spark to join its lists"
    written = sorted(table.rglob("part-*.parquet"))
    for path in written[::5]:
        shutil.copy(path, path.with_name(path.name.replace("part-", "part-9")))
    spark_broker.produce(topic, [event(n=12, day="0 %:")])
    declared.run()
    assert sorted(pq.read_table(table)["n"].to_pylist()) == list(range(13))
    assert set(written) < set(table.rglob("part-*.parquet"))


@pytest.mark.long
def test_a_pipeline_that_goes_on_reads_its_tables_anew(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    users = f"{topic}.users"
    spark_broker.produce(users, [Record('{"name": "Anna"}', key="a")])
    spark_broker.produce(topic, [event(user="a")])
    declared = Declared(
        tmp_path,
        spark,
        spark_broker,
        f"""
        name = "{topic}"
        trigger = "100 milliseconds"
        refresh = "5 seconds"
        [source.events]
        topic = "{topic}"
        format = "json"
        schema = "user STRING"
        [source.users]
        topic = "{users}"
        read = "latest"
        format = "json"
        schema = "name STRING"
        [step.named]
        sql = "SELECT e.user, u.name FROM events e JOIN users u ON u._key = e.user"
        [sink.out]
        from = "named"
        console = true
        """,
    )
    sent: list[str] = []

    def watch(figures: object) -> None:
        """Bob comes to the table, and then his events; the run ends when he was seen."""
        names = {row["name"] for row in declared.shown}
        if "Anna" in names and not sent:
            sent.append("b")
            spark_broker.produce(users, [Record('{"name": "Bob"}', key="b")])
        elif sent and "Bob" not in names:
            spark_broker.produce(topic, [event(user="b")])
        elif "Bob" in names:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        declared.run(watch)
    assert json.loads((tmp_path / ".pipelines" / topic / "status.json").read_text())["state"] == "stopped"
    assert not [query for query in spark.streams.active if query.isActive]


def test_the_python_form_declares_the_same(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    from headpond.spark.pipeline.load import load_pipeline
    from headpond.spark.pipeline.runner import Runner

    spark_broker.produce(topic, [event(user="a", n=1), event(user="a", n=2)])
    file = tmp_path / "pipeline.py"
    file.write_text(
        f"""
from headpond.spark.pipeline import Pipeline

pipeline = Pipeline("{topic}")
pipeline.source("events", topic="{topic}", format="json", schema="user STRING, n INT")
pipeline.sql("positive", "SELECT * FROM events WHERE n > 0")

@pipeline.step
def sums(positive):
    return positive.groupBy("user").sum("n").withColumnRenamed("sum(n)", "n")

pipeline.sink("out", from_="sums", topic="{topic}.out", partitions=1, key="user", mode="update")
"""
    )
    with Runner(load_pipeline(str(file)), spark_broker.bootstrap_servers) as runner:
        runner.survey()
        runner.run(spark, runner.plan(spark), show=lambda *_: None, watch=lambda _: None)
    assert json_values(spark_broker, f"{topic}.out", 1) == [{"user": "a", "n": 3}]
