"""SQL that may be a query and nothing else: planning a pipeline must not change anything, and a dry run least of all.

Spark executes a command (INSERT, CREATE, SET, ADD JAR, CACHE ...) the moment it is given to ``spark.sql``. So each text
is described first: ``DESCRIBE QUERY (...)`` takes only what Spark's grammar calls a query, says its columns, and
executes nothing. That holds on a Spark Connect server, too, whose parser can't be asked from here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headpond.spark.pipeline.sql_names import command_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NEAR = re.compile(r"near '(\w+)'")
_WRITES = {"INSERT", "MERGE", "UPDATE", "DELETE"}


class NotAQuery(Exception):
    """The message says which command it is; nothing of it was done."""


def query(spark: SparkSession, sql: str, *given: Any, **named: Any) -> DataFrame:
    """As ``spark.sql``; ``NotAQuery`` for a command, and Spark's own errors."""
    return _query(type(spark).sql, spark, sql, *given, **named)


@contextlib.contextmanager
def only_queries(spark: SparkSession) -> Iterator[None]:
    """Inside of the block ``spark.sql`` takes only queries: functions of steps are Python, and have the session."""
    kind: Any = type(spark)
    plain = kind.sql

    def guarded(self: SparkSession, sqlQuery: str, *given: Any, **named: Any) -> DataFrame:
        return _query(plain, self, sqlQuery, *given, **named)

    kind.sql = guarded
    try:
        yield
    finally:
        kind.sql = plain


def _query(plain: Any, spark: SparkSession, sql: str, *given: Any, **named: Any) -> DataFrame:
    from pyspark.errors import ParseException

    if (command := command_of(sql)) is not None:
        raise NotAQuery(told(command))
    try:
        # Two line ends: a comment may end in a backslash, which joins the next line to it.
        plain(spark, f"DESCRIBE QUERY ({sql}\n\n)", *given, **named)
    except ParseException as error:
        near = _NEAR.search(str(error))
        if near is not None and near[1].upper() in _WRITES:
            raise NotAQuery(told(near[1].upper())) from None
        raise
    found: DataFrame = plain(spark, sql, *given, **named)
    return found


def told(command: str) -> str:
    return f"{command} is a command, and a step must be a query, such as SELECT: nothing of it was executed"
