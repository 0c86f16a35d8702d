"""Spark with its own Kafka connector, run by the Python of an environment of its own (see ``../connector.py``).

Takes orders, a JSON line each, on its standard input: ``{"do": NAME, ...}``. Answers each with a line: what came out,
or ``{"error": TEXT}``.
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import DataFrame, SparkSession

COLUMNS = ["key", "value", "topic", "partition", "offset", "unix_millis(timestamp) AS timestamp_ms"]
WRITTEN = "topic string, partition int, key string, value string, headers array<struct<key:string,value:binary>>"


def read(spark: SparkSession, options: dict) -> dict:
    frame = spark.read.format("kafka").options(**options).load()
    return {"rows": rows_of(frame), "tasks": frame.rdd.getNumPartitions()}


def write(spark: SparkSession, options: dict, rows: list[dict]) -> dict:
    fields = [field.split()[0] for field in WRITTEN.split(", ")]
    table = [[with_bytes(row.get(name)) if name == "headers" else row.get(name) for name in fields] for row in rows]
    frame = spark.createDataFrame(table, WRITTEN)
    if "topic" in options:
        frame = frame.drop("topic")
    frame.write.format("kafka").options(**options).save()
    return {}


def stream(spark: SparkSession, options: dict, checkpoint: str) -> dict:
    """Everything that is there, then the end: the rows of each micro-batch."""
    batches: list[list[dict]] = []
    frame = spark.readStream.format("kafka").options(**options).load()
    writer = frame.writeStream.foreachBatch(lambda batch, _: batches.append(rows_of(batch)))
    run(writer.option("checkpointLocation", checkpoint))
    return {"batches": [batch for batch in batches if batch]}


def copy(spark: SparkSession, options: dict, checkpoint: str, target: dict) -> dict:
    frame = spark.readStream.format("kafka").options(**options).load()
    columns = ["key", "value", *(["headers"] if "headers" in frame.columns else [])]
    run(frame.select(columns).writeStream.format("kafka").options(**target).option("checkpointLocation", checkpoint))
    return {}


def run(writer: object) -> None:
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def rows_of(frame: DataFrame) -> list[dict]:
    has_headers = "headers" in frame.columns
    found = frame.selectExpr(*COLUMNS, *(["headers"] if has_headers else [])).orderBy("topic", "partition", "offset")
    rows = []
    for row in found.collect():
        rows.append({**row.asDict(), "key": as_text(row["key"]), "value": as_text(row["value"])})
        if has_headers and row["headers"] is not None:
            rows[-1]["headers"] = [[header["key"], as_text(header["value"])] for header in row["headers"]]
    return rows


def as_text(data: bytearray | None) -> str | None:
    return None if data is None else bytes(data).decode()


def with_bytes(headers: list | None) -> list | None:
    return None if headers is None else [(name, None if text is None else text.encode()) for name, text in headers]


def main() -> None:
    # Whatever Java prints goes to the log; the answers have their stream to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    builder = SparkSession.builder.master("local[2]").appName("connector")
    settings = {
        "spark.jars": sys.argv[1],
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    actions = {action.__name__: action for action in (read, write, stream, copy)}
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = actions[order.pop("do")](spark, **order)
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


main()
