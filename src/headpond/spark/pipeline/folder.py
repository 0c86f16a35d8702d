"""What a pipeline leaves between its runs: a folder of its own, bound to its name and to what it reads and writes.

pipeline.json   the name, the shape, the schemas, the columns of tables; written before the first batch
checkpoints/    one for each sink, Spark's
staging/        what the sink of topics lays down before it commits
status.json     how far it is, for ``headpond pipeline status``
.lock           held while it runs, and let go of by the system however it ends

What binds      A source or a sink is bound from the first batch that is planned for it on: what Spark refuses before
                leaves nothing that an edit would have to fit.
Columns         of a table are those of the last batch that it holds. What a run plans is noted beside them, with the
                batch that it begins after, and counts when there is a batch behind that.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from headpond.ports import File
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.random import SystemRandom
from headpond.spark.pipeline.checkpoint import Checkpoint
from headpond.spark.pipeline.failures import RunBusy, WrongFolder
from headpond.spark.pipeline.model import DEAD_LETTERS, Pipeline, Sink, Source
from headpond.spark.pipeline.places import BINDING, check_around

STATUS, LOCK = "status.json", ".lock"
VERSION = 1


class TableColumns(NamedTuple):
    """Of one table: name -> type."""

    known: dict[str, str] | None
    """Those that it has."""
    planned: dict[str, str]
    """Those that this run writes."""
    after: int
    """... in batches after this one."""


Columns = dict[str, TableColumns]


class Folder:
    def __init__(self, path: str) -> None:
        self.path = path
        self._fs = DiskFileSystem()
        self._lock: File | None = None

    # --- one run at a time --------------------------------------------------------------------------------------------

    def check_idle(self, name: str) -> None:
        """``RunBusy`` while another process runs the pipeline. Leaves nothing, and promises nothing for later."""
        if self.is_running():
            raise self._busy(name)

    def lock(self, name: str) -> None:
        """``RunBusy`` while another process runs the pipeline."""
        self._fs.make_dirs(self.path)
        self._lock = self._fs.lock(f"{self.path}/{LOCK}")
        if self._lock is None:
            raise self._busy(name)

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def is_running(self) -> bool:
        if not self._fs.exists(f"{self.path}/{LOCK}"):
            return False
        lock = self._fs.lock(f"{self.path}/{LOCK}")
        if lock is not None:
            lock.close()
        return lock is None

    def _busy(self, name: str) -> RunBusy:
        status = self.read_status() or {}
        return RunBusy(f"pipeline {name} is running already, as process {status.get('pid', 'unknown')}")

    # --- whose it is --------------------------------------------------------------------------------------------------

    def check(self, pipeline: Pipeline) -> dict[str, Any]:
        """What was bound before ({} for a new folder); ``WrongFolder`` where it was another pipeline."""
        bound = self._read(BINDING)
        check_around(self.path, f"pipeline {pipeline.name}: ")
        if bound is None:
            if self._fs.exists(f"{self.path}/checkpoints"):
                raise WrongFolder(f"{self.path} has checkpoints but no {BINDING}: nobody knows whose they are")
            return {}
        advice = f"give the pipeline another name or folder, or remove {self.path} to begin anew"
        if bound.get("name") != pipeline.name:
            raise WrongFolder(
                f"{self.path} is the folder of pipeline {bound.get('name')}, not of {pipeline.name}: {advice}"
            )
        if not all(isinstance(bound.get(key), dict) for key in ("sources", "sinks")) or "id" not in bound:
            raise WrongFolder(f"{self.path}/{BINDING} is damaged: {advice}")
        begun = [name for name in (*bound["sinks"], DEAD_LETTERS) if self.checkpoint(name).planned >= 0]
        if not begun:
            return {key: bound[key] for key in ("version", "id", "name") if key in bound}
        bound["sinks"] = {name: shape for name, shape in bound["sinks"].items() if name in begun}
        now = shape_of(pipeline)
        if told := _difference("source", bound["sources"], now["sources"], may_come=False):
            raise WrongFolder(f"pipeline {pipeline.name} has a checkpoint, and {told} since: {advice}")
        if told := _difference("sink", bound["sinks"], now["sinks"], may_come=True):
            raise WrongFolder(f"pipeline {pipeline.name} has a checkpoint, and {told} since: {advice}")
        return bound

    def bind(
        self,
        pipeline: Pipeline,
        bound: dict[str, Any],
        schemas: dict[str, str],
        columns: Columns,
        starts: dict[str, Any],
    ) -> dict[str, Any]:
        """Written before anything else is; returns what is bound now, with an ``id`` that every new folder has for
        itself. ``columns``: what this run plans, by table."""
        identity = bound.get("id") or SystemRandom().random_bytes(6).hex()
        shape = shape_of(pipeline)
        document = {
            "version": VERSION,
            "id": identity,
            "name": pipeline.name,
            "sources": shape["sources"],
            # A sink that went has left its checkpoint: one of its name that comes later must be the same.
            "sinks": {**bound.get("sinks", {}), **shape["sinks"]},
            "schemas": {**bound.get("schemas", {}), **schemas},
            "columns": {**bound.get("columns", {}), **{name: one.known for name, one in columns.items() if one.known}},
            "planned": {
                **bound.get("planned", {}),
                **{name: {"after": one.after, "columns": one.planned} for name, one in columns.items()},
            },
            "starts": starts,
        }
        self._write(BINDING, document)
        return document

    def checkpoint(self, sink_name: str) -> Checkpoint:
        return Checkpoint(f"{self.path}/checkpoints/{sink_name}")

    @property
    def staging(self) -> str:
        return f"{self.path}/staging"

    # --- how it is ----------------------------------------------------------------------------------------------------

    def read_status(self) -> dict[str, Any] | None:
        """What the last run has said; one that says ``running`` and holds no lock was killed."""
        status = self._read(STATUS)
        if status is not None and status.get("state") == "running" and not self.is_running():
            status["state"] = "killed"
        return status

    def write_status(self, document: dict[str, Any]) -> None:
        self._write(STATUS, document)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self._fs.read_file(f"{self.path}/{name}"))
        except FileNotFoundError:
            return None
        except ValueError:
            raise WrongFolder(f"{self.path}/{name} can't be read: it is no JSON") from None
        return found if isinstance(found, dict) else None

    def _write(self, name: str, document: dict[str, Any]) -> None:
        self._fs.make_dirs(self.path)
        self._fs.write_file_atomically(f"{self.path}/{name}", json.dumps(document, indent=1).encode() + b"\n")


def known_columns(bound: dict[str, Any], sink: Sink, *, written: int) -> dict[str, str] | None:
    """The columns that a table has; None: no batch of it was written yet. ``written``: the last batch that is in it."""
    planned = bound.get("planned", {}).get(sink.name)
    if planned is not None and written > planned["after"]:
        found: dict[str, str] = planned["columns"]
        return found
    before: dict[str, str] | None = bound.get("columns", {}).get(sink.name)
    return before


def shape_of(pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """What a checkpoint's offsets and state are about."""
    return {
        "sources": {source.name: _source_shape(source) for source in pipeline.sources},
        "sinks": {sink.name: _sink_shape(sink) for sink in pipeline.sinks},
    }


def _source_shape(source: Source) -> str:
    topics = source.pattern or ", ".join(source.topics)
    return f"{source.reading} of {topics} as {source.format.kind}"


def _sink_shape(sink: Sink) -> str:
    """Mode and upsert, too: they decide who counts the batches, and what lies in a table's folder."""
    target = "" if sink.kind == "console" else f" {sink.target}"
    mode = "" if sink.mode == "append" else f" in mode {sink.mode}"
    upsert = f" with upsert {', '.join(sink.upsert)}" if sink.upsert else ""
    return f"{sink.kind}{target}{mode}{upsert}"


def _difference(kind: str, before: dict[str, str], now: dict[str, str], *, may_come: bool) -> str | None:
    for name, shape in now.items():
        if name not in before:
            if not may_come:
                return f"{kind} {name} came"
        elif before[name] != shape:
            return f"{kind} {name} became {shape!r} (it was {before[name]!r})"
    gone = [name for name in before if name not in now]
    return f"{kind} {gone[0]} went" if gone and not may_come else None
