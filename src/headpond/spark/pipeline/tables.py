"""A folder of Parquet files that Spark's file sink appends to: what must be right before a query writes into it.

Spark keeps a list of the files that count, in ``_spark_metadata``. Spark itself reads by that list; DuckDB and pandas
take every file. So what a killed run has left behind without listing it is removed before the next one writes: files
that are named as Spark names them, in the folder itself and in those of its partitions. For the same reason a table
begins in an empty folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from headpond.runtime.files import DiskFileSystem
from headpond.spark.pipeline.checkpoint import Checkpoint, last_batch
from headpond.spark.pipeline.failures import WrongFolder
from headpond.spark.pipeline.files import is_url
from headpond.spark.pipeline.model import Sink
from headpond.spark.pipeline.places import FILE_LOG


def check_table(sink: Sink, checkpoint: Checkpoint) -> None:
    """A query that does not know all the batches of the list would silently leave out as many: Spark takes those with
    numbers of the list for written."""
    if is_url(sink.target):
        return
    fs = DiskFileSystem()
    what = f"{sink.place}: sink {sink.name}: {sink.target}"
    if fs.exists(sink.target) and not fs.is_dir(sink.target):
        raise WrongFolder(f"{what} is a file, and a table is a folder")
    is_new = checkpoint.query_id is None
    if is_new and written_to_table(sink) >= 0:
        raise WrongFolder(f"{what} was written by another query: give the sink another folder, or remove that one")
    if is_new and not fs.is_dir(f"{sink.target}/{FILE_LOG}") and (name := _first_entry(fs, sink.target)):
        raise WrongFolder(f"{what} holds {name!r}, and a table begins in an empty folder: give the sink another one")
    check_batches(what, written=written_to_table(sink), planned=checkpoint.planned)


def written_to_table(sink: Sink) -> int:
    """The last batch that the table's list has; -1: none, or a table that lies elsewhere."""
    return -1 if is_url(sink.target) else last_batch(f"{sink.target}/{FILE_LOG}")


def check_batches(what: str, *, written: int, planned: int, kind: str = "folder") -> None:
    """``WrongFolder`` where the target holds batches that the checkpoint does not know."""
    if written > planned:
        raise WrongFolder(set_back(what, written, planned, kind))


def set_back(what: str, written: int, planned: int, kind: str = "folder") -> str:
    known = "none" if planned < 0 else f"none after {planned}"
    return (
        f"{what} holds batch {written}, and the checkpoint knows {known}: it was set back; "
        f"use the newest checkpoint, or give the sink another name and {kind}"
    )


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
    fs = DiskFileSystem()
    if is_url(sink.target) or not fs.is_dir(f"{sink.target}/{FILE_LOG}"):
        return 0
    listed = set(_listed(fs, f"{sink.target}/{FILE_LOG}"))
    left = [path for path in _files(fs, sink.target) if path.rpartition("/")[2] not in listed]
    for path in left:
        fs.remove(path)
    return len(left)


def _first_entry(fs: DiskFileSystem, folder: str) -> str | None:
    """Of those that readers of a table see: not what begins with a dot or an underscore."""
    names = fs.list_dir(folder) if fs.is_dir(folder) else []
    return next((name for name in names if not name.startswith(("_", "."))), None)


def _listed(fs: DiskFileSystem, folder: str) -> Iterator[str]:
    """Names of files: each has an id of its own."""
    for name in fs.list_dir(folder):
        if not name.removesuffix(".compact").isdigit():
            continue
        for line in fs.read_file(f"{folder}/{name}").decode().splitlines()[1:]:
            entry: dict[str, Any] = json.loads(line)
            yield unquote(urlsplit(entry["path"]).path).rpartition("/")[2]


def _files(fs: DiskFileSystem, folder: str) -> Iterator[str]:
    """Those that Spark may have written: not what lies in a folder that is no partition, ``column=value``."""
    for name in fs.list_dir(folder):
        path = f"{folder}/{name}"
        if name.startswith(("_", ".")):
            continue
        if fs.is_dir(path):
            if "=" in name and not fs.exists(f"{path}/{FILE_LOG}"):
                yield from _files(fs, path)
        elif name.startswith("part-") and name.endswith(".parquet"):
            yield path
