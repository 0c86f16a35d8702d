"""A table in which a row replaces the one with the same key: Parquet files, one version of the whole for each batch.

    TABLE/current           leads to the newest whole version: what readers read, TABLE/current/*.parquet
    TABLE/<id>-<batch>/     the versions; the one before the newest stays for readers that have begun

A crash     leaves a version that nobody reads; the batch comes again and makes it anew. A batch that comes again after
            its version was switched to is done already. So each batch counts once.
The price   is that every batch writes the whole table: it is for tables of up to some millions of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from penstock.runtime.files import DiskFileSystem
from penstock.runtime.links import link_target, switch_link
from penstock.spark.pipeline.failures import RunFailed
from penstock.spark.pipeline.files import is_url
from penstock.spark.pipeline.mistakes import nearest
from penstock.spark.pipeline.model import METADATA, OFFSET, Sink

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


def kept_columns(frame: DataFrame, sink: Sink) -> list[str]:
    return [name for name in frame.columns if name not in METADATA or name in sink.upsert]


def make_upsert(sink: Sink, identity: str) -> Callable[[DataFrame, int], None]:
    """For ``foreachBatch``. ``identity``: of the pipeline's folder, so that a new checkpoint counts anew."""

    def upsert(frame: DataFrame, batch_id: int) -> None:
        version = f"{identity}-{batch_id:08d}"
        before = link_target(f"{sink.target}/{CURRENT}")
        frame = frame.persist()
        # Counted even where that is of no interest: a batch that is computed in part leaves its state in part.
        if frame.count() and before != version:
            _merged(frame, sink, before).write.mode("overwrite").parquet(f"{sink.target}/{version}")
            switch_link(f"{sink.target}/{CURRENT}", version)
            _remove_versions_but(sink.target, {version, before or version})
        frame.unpersist()

    return upsert


def _merged(frame: DataFrame, sink: Sink, before: str | None) -> DataFrame:
    news = _last_of_each_key(frame, sink)
    columns = kept_columns(frame, sink)
    kept = news.filter(~F.col(_DELETED)).select(*columns)
    if before is not None:
        old = frame.sparkSession.read.parquet(f"{sink.target}/{before}")
        same = [_same(old, news, name) for name in sink.upsert]
        untouched = old.join(news.select(*sink.upsert), same, "left_anti")
        kept = untouched.unionByName(kept, allowMissingColumns=True)
    return kept.coalesce(_files_for(kept))


def _last_of_each_key(frame: DataFrame, sink: Sink) -> DataFrame:
    deleted = F.coalesce(F.expr(sink.delete_when), F.lit(False)) if sink.delete_when else F.lit(False)
    marked = frame.withColumn(_DELETED, deleted)
    order = sink.order_by or (OFFSET if OFFSET in frame.columns else None)
    if order is None:
        return marked.dropDuplicates(list(sink.upsert))
    row = F.struct(*(F.col(f"`{name}`") for name in marked.columns))
    last = marked.groupBy(*(F.col(f"`{name}`").alias(f"_by_{name}") for name in sink.upsert)).agg(
        F.max_by(row, F.col(f"`{order}`")).alias(_ROWS)
    )
    return last.select(f"{_ROWS}.*")


def _same(old: DataFrame, news: DataFrame, name: str) -> Column:
    return old[name].eqNullSafe(news[name])


def _files_for(frame: DataFrame) -> int:
    return max(1, frame.count() // FILE_ROWS)


def _remove_versions_but(folder: str, kept: set[str]) -> None:
    fs = DiskFileSystem()
    for name in fs.list_dir(folder):
        head, _, number = name.rpartition("-")
        if head and number.isdigit() and name not in kept:
            fs.remove_tree(f"{folder}/{name}")
