"""Views to views: SQL, and functions that take views by the names of their parameters."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headpond.model.nearest import did_you_mean
from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.model import Step
from headpond.spark.pipeline.queries import NotAQuery, only_queries, query
from headpond.spark.pipeline.sources import with_watermark
from headpond.spark.pipeline.words import sql_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SESSION = "spark"
"""A parameter of this name gets the session."""


def apply_step(spark: SparkSession, step: Step, views: dict[str, DataFrame]) -> DataFrame:
    """``views``: sources and steps before this one, by name; those that SQL sees are registered under these names."""
    frame = _sql(spark, step) if step.sql is not None else _python(spark, step, views)
    if step.watermark is not None:
        frame = with_watermark(frame, step.watermark, f"{step.place}: step {step.name}: ")
    return frame


def _sql(spark: SparkSession, step: Step) -> DataFrame:
    from pyspark.errors import PySparkException

    assert step.sql is not None
    try:
        return query(spark, step.sql)
    except NotAQuery as error:
        raise RunFailed(f"{step.sql_place}: step {step.name}: {error}") from None
    except PySparkException as error:
        raise sql_failure(step, error) from error


def _python(spark: SparkSession, step: Step, views: dict[str, DataFrame]) -> DataFrame:
    function = step.function or _function(step)
    given: dict[str, Any] = {}
    for name in inspect.signature(function).parameters:
        if name == SESSION:
            given[name] = spark
        elif name in views:
            given[name] = views[name]
        else:
            hint = did_you_mean(name, views)
            raise RunFailed(
                f"{step.place}: step {step.name}: the parameter {name} is no source and no step before it{hint}"
            )
    try:
        with only_queries(spark):
            frame = function(**given)
    except NotAQuery as error:
        raise RunFailed(f"{step.place}: step {step.name}: {error}") from None
    except RunFailed:
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        raise RunFailed(f"{step.place}: step {step.name}: {type(error).__name__}: {first}") from error
    if not hasattr(frame, "writeStream"):
        raise RunFailed(f"{step.place}: step {step.name}: it should return a DataFrame, and returned {frame!r}")
    return frame


def _function(step: Step) -> Callable[..., Any]:
    assert step.python_file is not None
    try:
        names = runpy.run_path(step.python_file, run_name="headpond_pipeline_step")
    except Exception as error:
        raise RunFailed(
            f"{step.place}: step {step.name}: {step.python_file}: {type(error).__name__}: {error}"
        ) from error
    found: Callable[..., Any] = names[step.python_name]
    return found
