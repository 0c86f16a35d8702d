"""Where a pipeline writes on disk: no folder may lie inside another one's.

Spark's file sink and the upserts own what is in their folder, and remove what killed runs have left in it. Two owners
of one file would remove each other's.

Declared    what one declaration says is compared by ``validate``.
On disk     tables and folders of other pipelines are known by what they hold: looked for in the folders around.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from headpond.runtime.files import DiskFileSystem
from headpond.runtime.links import is_same_folder, link_target, real_path
from headpond.spark.pipeline.failures import WrongFolder
from headpond.spark.pipeline.files import is_url
from headpond.spark.pipeline.mistakes import Mistakes
from headpond.spark.pipeline.model import Pipeline, Sink

FILE_LOG = "_spark_metadata"
"""In a table that is appended to: the files that count, by batch."""
BINDING = "pipeline.json"
"""In the folder of a pipeline: whose it is."""
CURRENT = "current"
"""In a table with upsert: leads to the version that counts."""
VERSION = re.compile(r"([0-9a-f]{12})-(\d{8,})")
"""What a version is called: the id of the pipeline's folder, and the batch."""
_FILE_URL = re.compile(r"^file:/{1,3}(?=[^/])")


class _Folder(NamedTuple):
    path: str
    what: str
    sink: Sink | None


def check_places(pipeline: Pipeline, mistakes: Mistakes) -> None:
    """Of one declaration: each table in a folder of its own, outside of the others and of the pipeline's."""
    known = [_Folder(pipeline.folder, "where the pipeline keeps its checkpoints", None)]
    for sink in pipeline.sinks:
        if sink.kind != "parquet" or not sink.target:
            continue
        for other in known:
            if told := _clash(sink.target, other):
                mistakes.add(sink.place, f"sink {sink.name}: {told}: give it a folder of its own")
        known.append(_Folder(sink.target, f"where sink {sink.name} writes", sink))


def check_around(path: str, what: str) -> None:
    """``WrongFolder`` where a folder around this one belongs to a pipeline or is a table. ``what``: of the sentence."""
    if is_url(path):
        return
    for folder in _around(real_path(path)):
        if owner := _owner(folder):
            raise WrongFolder(f"{what}{path} lies inside {folder}, {owner}: choose a folder outside of it")


def _owner(folder: str) -> str | None:
    fs = DiskFileSystem()
    if fs.is_dir(f"{folder}/{FILE_LOG}"):
        return "which is a table"
    if VERSION.fullmatch(link_target(f"{folder}/{CURRENT}") or ""):
        return "which is a table with upsert"
    if fs.exists(f"{folder}/{BINDING}") and fs.is_dir(f"{folder}/checkpoints"):
        return "which is the folder of a pipeline"
    return None


def _clash(target: str, other: _Folder) -> str | None:
    mine, theirs = _place(target), _place(other.path)
    if _is_same(mine, theirs):
        return f"{target} is {other.what}, too" if other.sink else f"{target} is {other.what}"
    if _is_inside(mine, theirs):
        return f"{target} lies inside {other.path}, {other.what}"
    if _is_inside(theirs, mine):
        return f"{other.path}, {other.what}, lies inside {target}"
    return None


def _place(path: str) -> str:
    """One spelling for one folder: without links, ``..`` and slashes that say nothing."""
    path = _FILE_URL.sub("/", path)
    if not is_url(path):
        return real_path(path)
    scheme, _, rest = path.partition("://")
    host, _, inner = rest.partition("/")
    return f"{scheme.lower()}://{host}" + posixpath.normpath(f"/{inner.strip('/')}").rstrip("/")


def _is_inside(inner: str, outer: str) -> bool:
    return any(_is_same(folder, outer) for folder in _around(inner))


def _is_same(one: str, other: str) -> bool:
    """Also where the file system has one folder under names that differ in case, or is mounted twice."""
    return one == other or (not is_url(one) and not is_url(other) and is_same_folder(one, other))


def _around(path: str) -> Iterator[str]:
    """The folders around, from the nearest on."""
    while True:
        outer = path.rpartition("/")[0]
        if is_url(path):
            if outer.endswith("/") or not outer:
                return
        elif path == "/":
            return
        path = outer or "/"
        yield path
