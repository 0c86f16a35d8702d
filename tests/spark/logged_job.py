"""A job that Spark writes a log of events about: it writes, reads, copies a stream, and fails with a wrong password and
with a staging folder whose address has one in it.

    python logged_job.py '{"session": ..., "settings": {...}, "options": {...}, "wrong": {...}, "topic": ..., ...}'

``session``: ``ours``, ``plain``, or the address of a Spark Connect server, whose log it is then.

Ends with 0 when everything went as it should, and the log is complete then.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 20
REFUSAL = "does not let user alice in by SCRAM-SHA-512"
STAGING_REFUSAL = "has credentials in it"


def main(plan: dict[str, Any]) -> None:
    spark = session_of(plan["session"], plan["settings"])
    try:
        topic, given = plan["topic"], plan["options"]
        rows = spark.range(ROWS).selectExpr("CAST(id AS STRING) AS value")
        rows.write.format("headpond").options(**given, topic=topic).mode("append").save()
        read = spark.read.format("headpond").options(**given, subscribe=topic).load()
        assert read.count() == ROWS
        assert view(spark, {**given, "subscribe": topic}) == ROWS
        copy(spark, given, topic, plan["folder"])
        wrong = spark.read.format("headpond").options(**plan["wrong"], subscribe=topic).load()
        expect_refusal(lambda: wrong.count())
        expect_refusal(
            lambda: rows.write.format("headpond").options(**plan["wrong"], topic=topic).mode("append").save()
        )
        staged = rows.write.format("headpond").options(**given, topic=topic, stagingDir=plan["staging"]).mode("append")
        expect_refusal(lambda: staged.save(), STAGING_REFUSAL)
    finally:
        spark.stop()


def session_of(kind: str, settings: dict[str, str]) -> SparkSession:
    from headpond.spark.session import start_session

    if kind == "plain":
        return plain_session(settings)
    if kind == "ours":
        return start_session("logged", master="local[2]", config=settings)
    return start_session("logged", remote=kind, config=settings)


def plain_session(settings: dict[str, str]) -> SparkSession:
    """One that is made as people make theirs."""
    from pyspark.sql import SparkSession

    from headpond.spark.session import embedded_settings, use_a_java, use_this_python

    use_this_python()
    use_a_java()
    builder = SparkSession.builder.appName("logged").master("local[2]")
    for name, value in {**embedded_settings(), **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def view(spark: SparkSession, options: dict[str, str]) -> int:
    listed = ", ".join(f"'{name}' '{value}'" for name, value in options.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW numbers USING headpond OPTIONS ({listed})")
    return int(spark.sql("SELECT count(*) FROM numbers").collect()[0][0])


def copy(spark: SparkSession, given: dict[str, str], topic: str, folder: str) -> None:
    rows = spark.readStream.format("headpond").options(**given, subscribe=topic, startingOffsets="earliest").load()
    query = (
        rows.select("value")
        .writeStream.format("headpond")
        .options(**given, topic=f"{topic}-copy", checkpointLocation=f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def expect_refusal(action: Any, sentence: str = REFUSAL) -> None:
    try:
        action()
    except Exception as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(f"no word of: {sentence}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
