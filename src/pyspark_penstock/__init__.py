"""Where Spark finds the data source ``penstock`` by its name.

Spark imports every top-level package whose name begins with ``pyspark_``, and one that raises hides all others. So
nothing is imported here before Spark asks for ``DefaultSource``; and where that can't be had (another Spark, a broken
installation) there is none.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "DefaultSource":
        try:
            from penstock.spark.data_source import PenstockDataSource
        except Exception as error:
            raise AttributeError(f"{__name__} has no DefaultSource here: {error}") from error
        return PenstockDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
