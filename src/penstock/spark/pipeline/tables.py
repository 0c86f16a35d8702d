"""A folder of Parquet files that Spark's file sink appends to: what must be right before a query writes into it.

Spark keeps a list of the files that count, in ``_spark_metadata``. Spark itself reads by that list; DuckDB and pandas
take every file. So what a killed run has left behind without listing it is removed before the next one writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.runtime.files import DiskFileSystem
from penstock.spark.pipeline.failures import WrongFolder
from penstock.spark.pipeline.files import is_url
from penstock.spark.pipeline.model import Sink

METADATA = "_spark_metadata"


def check_table(sink: Sink, checkpoint: str | None) -> None:
    """A query that does not know all the batches of the list would silently leave out as many: Spark takes those with
    numbers of the list for written. ``checkpoint``: the query's folder; None for one that has none yet."""
    fs = DiskFileSystem()
    if is_url(sink.target) or not fs.exists(f"{sink.target}/{METADATA}"):
        return
    what = f"{sink.place}: sink {sink.name}: {sink.target}"
    if checkpoint is None:
        raise WrongFolder(f"{what} was written by another query: give the sink another folder, or remove that one")
    check_batches(sink, checkpoint, written=_last_batch(fs, f"{sink.target}/{METADATA}"))


def check_batches(sink: Sink, checkpoint: str, *, written: int) -> None:
    """``written``: the last batch that the table holds."""
    planned = _last_batch(DiskFileSystem(), f"{checkpoint}/offsets")
    if written > planned:
        raise WrongFolder(f"{sink.place}: sink {sink.name}: {set_back(sink, written, planned)}")


def set_back(sink: Sink, written: int, planned: int) -> str:
    known = "none" if planned < 0 else f"none after {planned}"
    return (
        f"{sink.target} holds batch {written}, and the checkpoint knows {known}: it was set back; "
        "use the newest checkpoint, or give the sink another name and folder"
    )


def _last_batch(fs: DiskFileSystem, folder: str) -> int:
    """Of a log of Spark's; -1: none."""
    names = [name.removesuffix(".compact") for name in fs.list_dir(folder)] if fs.exists(folder) else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def check_columns(sink: Sink, before: dict[str, str] | None, now: dict[str, str]) -> None:
    """Columns may come; those that readers of the table know must stay what they were."""
    for name, kind in (before or {}).items():
        if name not in now:
            told = f"column {name} is gone"
        elif now[name] != kind:
            told = f"column {name} was {kind} and is {now[name]} now"
        else:
            continue
        raise WrongFolder(
            f"{sink.place}: sink {sink.name}: the schema has changed, {told}: give the sink another name and folder"
        )


def sweep(sink: Sink) -> int:
    """Remove what a killed run has left; the number of files."""
    if is_url(sink.target):
        return 0
    fs = DiskFileSystem()
    if not fs.exists(f"{sink.target}/{METADATA}"):
        return 0
    listed = set(_listed(fs, f"{sink.target}/{METADATA}"))
    left = [path for path in _files(fs, sink.target) if path.rpartition("/")[2] not in listed]
    for path in left:
        fs.remove(path)
    return len(left)


def _listed(fs: DiskFileSystem, folder: str) -> Iterator[str]:
    """Names of files: each has an id of its own."""
    for name in fs.list_dir(folder):
        if not name.removesuffix(".compact").isdigit():
            continue
        for line in fs.read_file(f"{folder}/{name}").decode().splitlines()[1:]:
            entry: dict[str, Any] = json.loads(line)
            yield unquote(urlsplit(entry["path"]).path).rpartition("/")[2]


def _files(fs: DiskFileSystem, folder: str) -> Iterator[str]:
    for name in fs.list_dir(folder):
        path = f"{folder}/{name}"
        if name.startswith(("_", ".")):
            continue
        if fs.is_dir(path):
            yield from _files(fs, path)
        elif name.endswith(".parquet"):
            yield path
