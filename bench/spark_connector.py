"""Spark's own Kafka connector, the peer of `format("headpond")`: run by the Python of an environment of its own.

`python spark_connector.py JARS`: each line of its input is {"bootstrap": ..., "topic": ...}; it reads the topic in
local[2] and answers with a line, {"seconds": ..., "value_bytes": ...} or {"error": ...}. The session
stays, so that Java is as warm as it gets.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    # Whatever Java prints goes to the log; the answers have their stream to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("headpond-bench-connector")
        .config("spark.jars", sys.argv[1])
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = read(spark, order["bootstrap"], order["topic"])
        except Exception as error:
            answer = {"error": str(error).splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


def read(spark: Any, bootstrap: str, topic: str) -> dict[str, float]:
    started = time.perf_counter()
    frame = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic).load()
    value_bytes = frame.selectExpr("sum(length(value))").collect()[0][0]
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "value_bytes": value_bytes}


main()
