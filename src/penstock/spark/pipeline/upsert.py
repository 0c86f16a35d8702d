"""A table in which a row replaces the one with the same key: Parquet files, one version of the whole for each batch.

    TABLE/current           leads to the newest whole version: what readers read, TABLE/current/*.parquet
    TABLE/<id>-<batch>/     the versions; the one before the newest stays for readers that have begun

The last    of several rows with one key is the one with the greatest ``order_by`` (null is before everything, and of
            equals the one that came later), whether they come in one batch or in several: what a table holds must not
            depend on where Spark cuts its batches. A key that was deleted is forgotten, with its order.
A crash     leaves a version that nobody reads; the batch comes again and makes it anew. A batch that comes again after
            its version was switched to is done already. So each batch counts once. One before it is refused: the
            checkpoint was set back, and its numbers are those of other rows now.
The price   is that every batch writes the whole table: it is for tables of up to some millions of rows.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from penstock.runtime.files import DiskFileSystem
from penstock.runtime.links import link_target, switch_link
from penstock.spark.pipeline.failures import RunFailed
from penstock.spark.pipeline.files import is_url
from penstock.spark.pipeline.mistakes import nearest
from penstock.spark.pipeline.model import METADATA, OFFSET, Sink
from penstock.spark.pipeline.tables import check_batches, set_back

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CURRENT = "current"
FILE_ROWS = 1_000_000
"""About so many rows in a file."""
_DELETED, _ROWS = "_penstock_deleted", "_penstock_rows"


def check_upsert(frame: DataFrame, sink: Sink) -> None:
    what = f"{sink.place}: sink {sink.name}: "
    if is_url(sink.target):
        raise RunFailed(f"{what}a table with upsert must lie in a folder of this machine, or one that is mounted")
    for name in (*sink.upsert, *([sink.order_by] if sink.order_by else [])):
        if name not in frame.columns:
            raise RunFailed(f"{what}{sink.input} has no column {name}{nearest(name, frame.columns)}")


def check_versions(sink: Sink, identity: str, checkpoint: str) -> None:
    """``WrongFolder`` where the table holds batches that the checkpoint does not know."""
    check_batches(sink, checkpoint, written=_batch_of(link_target(f"{sink.target}/{CURRENT}"), identity))


def kept_columns(frame: DataFrame, sink: Sink) -> list[str]:
    """``order_by`` among them: the rows of later batches are compared with it."""
    return [name for name in frame.columns if name not in METADATA or name in (*sink.upsert, sink.order_by)]


def make_upsert(sink: Sink, identity: str) -> Callable[[DataFrame, int], None]:
    """For ``foreachBatch``. ``identity``: of the pipeline's folder, so that a new checkpoint counts anew."""

    def upsert(frame: DataFrame, batch_id: int) -> None:
        version = f"{identity}-{batch_id:08d}"
        before = link_target(f"{sink.target}/{CURRENT}")
        if (written := _batch_of(before, identity)) > batch_id:
            raise RunFailed(set_back(sink, written, batch_id))
        frame = frame.persist()
        # Counted even where that is of no interest: a batch that is computed in part leaves its state in part.
        if frame.count() and before != version:
            _merged(frame, sink, before).write.mode("overwrite").parquet(f"{sink.target}/{version}")
            switch_link(f"{sink.target}/{CURRENT}", version)
            _remove_versions_but(sink.target, {version, before or version})
        frame.unpersist()

    return upsert


def _batch_of(version: str | None, identity: str) -> int:
    """-1: there is no version, or it is one of another checkpoint's."""
    head, _, number = (version or "").rpartition("-")
    return int(number) if head == identity and number.isdigit() else -1


def _merged(frame: DataFrame, sink: Sink, before: str | None) -> DataFrame:
    news = _last_of_each_key(frame, sink)
    if before is not None:
        news = _without_older(news, _version(frame, sink, before), sink)
    kept = news.filter(~F.col(_DELETED)).select(*kept_columns(frame, sink))
    if before is not None:
        old = _version(frame, sink, before)
        untouched = old.join(news.select(*sink.upsert), _same_key(old, news, sink), "left_anti")
        kept = untouched.unionByName(kept, allowMissingColumns=True)
    return kept.coalesce(_files_for(kept))


def _last_of_each_key(frame: DataFrame, sink: Sink) -> DataFrame:
    deleted = F.coalesce(F.expr(sink.delete_when), F.lit(False)) if sink.delete_when else F.lit(False)
    marked = frame.withColumn(_DELETED, deleted)
    order = [name for name in (sink.order_by, OFFSET) if name in frame.columns]
    if not order:
        return marked.dropDuplicates(list(sink.upsert))
    row = F.struct(*(F.col(f"`{name}`") for name in marked.columns))
    # A struct, for max_by passes over rows whose order is null: a key that has no others would be lost.
    last = marked.groupBy(*(F.col(f"`{name}`").alias(f"_by_{name}") for name in sink.upsert)).agg(
        F.max_by(row, F.struct(*(F.col(f"`{name}`") for name in order))).alias(_ROWS)
    )
    return last.select(f"{_ROWS}.*")


def _without_older(news: DataFrame, old: DataFrame, sink: Sink) -> DataFrame:
    """Rows that come late, after a later one of the same key, change nothing."""
    order = sink.order_by
    if order is None or order not in old.columns:
        return news
    is_older = old[order].isNotNull() & (news[order].isNull() | (news[order] < old[order]))
    return news.join(old, _same_key(old, news, sink) & is_older, "left_anti")


def _version(frame: DataFrame, sink: Sink, version: str) -> DataFrame:
    """Read anew for each use: a join of a frame with what was made of it would confuse its columns."""
    return frame.sparkSession.read.parquet(f"{sink.target}/{version}")


def _same_key(old: DataFrame, news: DataFrame, sink: Sink) -> Column:
    same = [old[name].eqNullSafe(news[name]) for name in sink.upsert]
    return functools.reduce(operator.and_, same)


def _files_for(frame: DataFrame) -> int:
    return max(1, frame.count() // FILE_ROWS)


def _remove_versions_but(folder: str, kept: set[str]) -> None:
    fs = DiskFileSystem()
    for name in fs.list_dir(folder):
        head, _, number = name.rpartition("-")
        if head and number.isdigit() and name not in kept:
            fs.remove_tree(f"{folder}/{name}")
