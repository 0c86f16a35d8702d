"""Two rules about payments with a card, in Python: too many in ten minutes, and two countries within half an hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headpond.spark.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAYMENTS_MAX = 3

pipeline = Pipeline("fraud")
pipeline.source(
    "payments",
    topic="payments",
    format="json",
    schema="card STRING NOT NULL, amount DECIMAL(10, 2), country STRING, at TIMESTAMP NOT NULL",
    watermark={"column": "at", "delay": "5 minutes"},
)


@pipeline.step
def many(payments: DataFrame) -> DataFrame:
    """Windows of ten minutes, one every five: a burst is in one of them as a whole."""
    from pyspark.sql import functions as F

    windows = payments.groupBy("card", F.window("at", "10 minutes", "5 minutes"))
    counted = windows.agg(F.count("*").alias("payments"), F.sum("amount").alias("amount"))
    return counted.filter(F.col("payments") > PAYMENTS_MAX).select(
        "card",
        F.lit("many payments").alias("rule"),
        F.col("window.start").alias("since"),
        F.format_string("%d payments of %s together", "payments", F.col("amount").cast("string")).alias("why"),
    )


pipeline.sql(
    "travelling",
    """
    SELECT a.card, 'two countries' AS rule, a.at AS since, concat(a.country, ' and ', b.country) AS why
    FROM payments a JOIN payments b
      ON a.card = b.card AND a.country <> b.country
     AND b.at BETWEEN a.at AND a.at + INTERVAL 30 MINUTES
    """,
)

pipeline.sink("many", from_="many", topic="fraud-alerts", partitions=1, key="card")
pipeline.sink("travelling", from_="travelling", topic="fraud-alerts", partitions=1, key="card")
