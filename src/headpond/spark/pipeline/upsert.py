"""A table in which a row replaces the one with the same key: Parquet files, one version of the whole for each batch.

The last    of several rows with one key stays (``last_rows`` says which that is), whether they come in one batch or in
            several: with ``order_by`` what a table holds does not depend on where Spark cuts its batches. A key that
            was deleted is forgotten, with its order.
A crash     leaves a version that is read by no one (``versions``); the batch comes again and makes it anew. A batch
            that comes again after its version was switched to is done already. So each batch counts once. One before
            it is refused: the checkpoint was set back, and its numbers are those of other rows now.
The price   is that every batch writes the whole table: it is for tables of up to some millions of rows.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headpond.model.nearest import did_you_mean
from headpond.spark.patterns import literal
from headpond.spark.pipeline.checkpoint import Checkpoint
from headpond.spark.pipeline.columns import column
from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.files import is_url
from headpond.spark.pipeline.last_rows import DELETED, kept_columns, last_of_each_key
from headpond.spark.pipeline.model import Sink
from headpond.spark.pipeline.tables import check_batches, set_back
from headpond.spark.pipeline.versions import Versions
from headpond.spark.pipeline.words import reason_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FILE_ROWS = 1_000_000
"""About so many rows in a file."""


def check_upsert(frame: DataFrame, sink: Sink) -> None:
    from pyspark.errors import PySparkException

    what = f"{sink.place}: sink {sink.name}: "
    if is_url(sink.target):
        raise RunFailed(f"{what}a table with upsert must lie in a folder of this machine, or one that is mounted")
    for name in (*sink.upsert, *([sink.order_by] if sink.order_by else [])):
        if name not in frame.columns:
            raise RunFailed(f"{what}{sink.input} has no column {name}{did_you_mean(name, frame.columns)}")
    if sink.delete_when is not None:
        try:
            frame.filter(F.expr(sink.delete_when))
        except PySparkException as error:
            raise RunFailed(f"{what}delete_when: {reason_of(error)}") from error


def check_versions(sink: Sink, identity: str | None, checkpoint: Checkpoint) -> None:
    """``WrongFolder`` where the table is another pipeline's, or holds batches that the checkpoint does not know.
    ``identity``: None for a pipeline that has no folder yet."""
    if is_url(sink.target):
        return
    versions = Versions(sink.target, identity)
    what = f"{sink.place}: sink {sink.name}: "
    versions.check(what)
    check_batches(f"{what}{sink.target}", written=versions.written(), planned=checkpoint.planned)


def make_upsert(sink: Sink, identity: str, *, is_in_order: bool = False) -> Callable[[DataFrame, int], None]:
    """For ``foreachBatch``. ``identity``: of the pipeline's folder, so that a new checkpoint counts anew.
    ``is_in_order``: whether rows come in the order in which records were read."""
    versions = Versions(sink.target, identity)

    def upsert(frame: DataFrame, batch_id: int) -> None:
        versions.check("")
        if (written := versions.written()) > batch_id:
            raise RunFailed(set_back(sink.target, written, batch_id))
        frame = frame.persist()
        try:
            # Counted even where that is of no interest: a batch that is computed in part leaves its state in part.
            if frame.count() and written != batch_id:
                _write(frame, sink, versions, batch_id, is_in_order=is_in_order)
        finally:
            frame.unpersist()

    return upsert


def _write(frame: DataFrame, sink: Sink, versions: Versions, batch_id: int, *, is_in_order: bool) -> None:
    version, before = versions.name(batch_id), versions.current()
    old = None if before is None else versions.path(before)
    _merged(frame, sink, old, is_in_order=is_in_order).write.mode("overwrite").parquet(versions.path(version))
    versions.switch(version)
    versions.remove_but({version, before or version})


def _merged(frame: DataFrame, sink: Sink, old_path: str | None, *, is_in_order: bool) -> DataFrame:
    news = last_of_each_key(frame, sink, is_in_order=is_in_order)
    if old_path is not None:
        news = _without_older(news, _version(frame, old_path), sink)
    kept = news.filter(~F.col(DELETED)).select(*map(column, kept_columns(frame, sink)))
    if old_path is not None:
        old = _version(frame, old_path)
        untouched = old.join(news.select(*map(column, sink.upsert)), _same_key(old, news, sink), "left_anti")
        kept = untouched.unionByName(kept, allowMissingColumns=True)
    return kept.coalesce(_files_for(kept))


def _without_older(news: DataFrame, old: DataFrame, sink: Sink) -> DataFrame:
    """Rows that come late, after a later one of the same key, change nothing."""
    if sink.order_by is None or sink.order_by not in old.columns:
        return news
    new_order, old_order = _of(news, sink.order_by), _of(old, sink.order_by)
    is_older = old_order.isNotNull() & (new_order.isNull() | (new_order < old_order))
    return news.join(old, _same_key(old, news, sink) & is_older, "left_anti")


def _version(frame: DataFrame, path: str) -> DataFrame:
    """Read anew for each use: a join of a frame with what was made of it would confuse its columns."""
    return frame.sparkSession.read.parquet(literal(path))


def _same_key(old: DataFrame, news: DataFrame, sink: Sink) -> Column:
    same = [_of(old, name).eqNullSafe(_of(news, name)) for name in sink.upsert]
    return functools.reduce(operator.and_, same)


def _of(frame: DataFrame, name: str) -> Column:
    return frame[f"`{name.replace('`', '``')}`"]


def _files_for(frame: DataFrame) -> int:
    return max(1, frame.count() // FILE_ROWS)
