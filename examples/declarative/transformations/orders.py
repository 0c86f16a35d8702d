"""Orders in, big ones out: a streaming table in Spark's catalog, and a topic."""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
BOOTSTRAP = os.environ.get("ORDERS_BOOTSTRAP", "127.0.0.1:9092")

dp.create_sink("big_orders_topic", "headpond", {"kafka.bootstrap.servers": BOOTSTRAP, "topic": "big-orders"})


@dp.table
def orders() -> DataFrame:
    records = (
        spark.readStream.format("headpond")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", "sdp-orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.selectExpr("from_json(CAST(value AS STRING), 'id INT, total DOUBLE') AS o").select("o.*")


@dp.append_flow(target="big_orders_topic")
def big_orders() -> DataFrame:
    big = spark.readStream.table("orders").filter("total > 100")
    return big.selectExpr("CAST(id AS STRING) AS key", "to_json(struct(*)) AS value")
