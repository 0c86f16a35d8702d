"""What Spark tells of its batches, in each of the forms in which it does."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.spark.pipeline.figures import Figures

SCHEMA = {"type": "struct", "fields": [{"name": "rows", "type": "long"}]}


@pytest.mark.parametrize(
    ("row", "rows"),
    [
        ({"rows": 7}, 7),
        ({"values": [7], "schema": SCHEMA}, 7),
        ([[7], SCHEMA], 7),
        ([7], 7),
        ([], 0),
        (None, 0),
        ({"rows": None}, 0),
    ],
)
def test_rows_that_went_to_the_sink_are_counted_however_spark_tells_of_them(row: Any, rows: int) -> None:
    figures = Figures("out", "group")
    sources = [{"numInputRows": 9, "endOffset": {"t": {"0": 9}}, "latestOffset": {"t": {"0": 10}}}]
    for batch in range(2):
        figures.add({"batchId": batch, "timestamp": "", "observedMetrics": {"headpond": row}, "sources": sources})
    assert (figures.rows_written, figures.rows_read, figures.batches, figures.lag) == (2 * rows, 18, 2, 1)
