"""Where Spark finds the data source ``headpond`` by its name.

Spark imports every top-level package whose name begins with ``pyspark_``, and one that raises hides all others. So
nothing is imported here before Spark asks for ``DefaultSource``; and where that can't be had (another Spark, a broken
installation) there is none.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "DefaultSource":
        try:
            from headpond.spark.data_source import HeadpondDataSource
        except Exception as error:
            raise AttributeError(f"{__name__} has no DefaultSource here: {error}") from error
        return HeadpondDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
