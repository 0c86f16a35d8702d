"""The last row of each key of a batch, for tables with upsert.

The order, exactly: a row is later than another of its key if

1. its ``order_by`` is greater; null is before everything.
2. of equals, and without ``order_by``: it was read later. Within a batch that is
   a. by ``_topic``, ``_partition`` and ``_offset`` where the view has all three: offsets of different partitions are
      never compared, the greater partition comes later;
   b. else, and of equals, by the order of its rows, where that is the order in which records were read: in a view
      that is made of SELECT, WHERE, UNION ALL and functions of one row. (A task reads a part of one partition, and
      tasks are in the order of topic, partition and offset.)

A view that joins, groups or sorts has no such order. Two rows of one key that nothing tells apart are no matter if they
are equal; else the batch fails with a sentence that says what to add: a table must not hold what chance has left in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headpond.spark.pipeline.columns import column
from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.model import METADATA, OFFSET, PARTITION, TOPIC, Sink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DELETED = "_upsert_deleted"
_AT, _ROW, _ORDER, _IS_TIED = "_upsert_at", "_upsert_row", "_upsert_order", "_upsert_tied"
_READ_AT = (TOPIC, PARTITION, OFFSET)
_KEEP_ORDER = {
    *("Project", "Filter", "Union", "Generate", "EventTimeWatermark", "CollectMetrics", "SubqueryAlias", "View"),
    *("StreamingRelation", "StreamingRelationV2", "StreamingDataSourceV2Relation", "StreamingExecutionRelation"),
    *("ArrowEvalPython", "BatchEvalPython"),
}
"""Nodes of an optimized plan whose rows are in the order of the rows that they take."""


def kept_columns(frame: DataFrame, sink: Sink) -> list[str]:
    """``order_by`` among them: the rows of later batches are compared with it."""
    return [name for name in frame.columns if name not in METADATA or name in (*sink.upsert, sink.order_by)]


def is_in_read_order(frame: DataFrame) -> bool:
    """Whether the rows of a stream come in the order in which its records are read."""
    plans: Any = frame._jdf.queryExecution()
    optimizer: Any = frame.sparkSession._jsparkSession.sessionState().optimizer()
    return all(name in _KEEP_ORDER for name in _nodes(optimizer.execute(plans.analyzed())))


def last_of_each_key(frame: DataFrame, sink: Sink, *, is_in_order: bool) -> DataFrame:
    """One row for each key, marked with whether it was deleted; ``RunFailed`` where nothing says which is last."""
    deleted = F.coalesce(F.expr(sink.delete_when), F.lit(False)) if sink.delete_when else F.lit(False)
    marked = frame.withColumn(DELETED, deleted)
    if is_in_order:
        marked = marked.withColumn(_AT, F.monotonically_increasing_id())
    row = F.struct(*map(column, marked.columns))
    keys = [column(name).alias(f"_by_{number}") for number, name in enumerate(sink.upsert)]
    if is_in_order:
        last = marked.groupBy(*keys).agg(F.max_by(row, _order(marked, sink)).alias(_ROW))
    else:
        last = _without_ties(marked, sink, keys, row)
    return last.select(f"{_ROW}.*").drop(_AT)


def _order(marked: DataFrame, sink: Sink) -> Column:
    """A struct, for max_by passes over rows whose order is null: a key that has no others would be lost."""
    names = [sink.order_by] if sink.order_by else []
    names += _READ_AT if all(name in marked.columns for name in _READ_AT) else ()
    names += [_AT] if _AT in marked.columns else []
    return F.struct(*map(column, names)) if names else F.struct(F.lit(0))


def _without_ties(marked: DataFrame, sink: Sink, keys: list[Column], row: Column) -> DataFrame:
    seen = F.to_json(F.struct(*map(column, [*kept_columns(marked, sink)])))
    of_one_order = marked.groupBy(*keys, _order(marked, sink).alias(_ORDER)).agg(
        F.first(row).alias(_ROW), (F.min(seen) != F.max(seen)).alias(_IS_TIED)
    )
    names = [f"_by_{number}" for number in range(len(keys))]
    both = F.struct(F.col(_ROW), F.col(_IS_TIED))
    last = of_one_order.groupBy(*names).agg(F.max_by(both, F.col(_ORDER)).alias("_last")).select(*names, "_last.*")
    if tied := last.filter(F.col(_IS_TIED)).limit(1).collect():
        key = ", ".join(f"{name} {tied[0][at]}" for name, at in zip(sink.upsert, names, strict=True))
        more = "" if sink.order_by is None else " that tells them apart"
        raise RunFailed(
            f"{sink.input} has several rows of {key} in one batch, and nothing says which is the last: "
            f"give order_by a column{more}, or let {sink.input} have {', '.join(_READ_AT)}"
        )
    return last


def _nodes(plan: Any) -> list[str]:
    children = plan.children()
    found = [str(plan.nodeName())]
    for number in range(children.size()):
        found += _nodes(children.apply(number))
    return found
