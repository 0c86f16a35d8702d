"""How a pipeline is, where others can read it: a file beside its checkpoints, written at most once a second."""

from __future__ import annotations

from headpond.ports import Clock
from headpond.runtime.environment import host_name, process_id
from headpond.spark.pipeline.figures import Figures
from headpond.spark.pipeline.folder import Folder
from headpond.spark.pipeline.model import Pipeline

INTERVAL_MS = 1_000


class StatusFile:
    def __init__(self, folder: Folder, pipeline: Pipeline, bootstrap: str, clock: Clock) -> None:
        self._folder = folder
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._clock = clock
        self._started_ms = clock.now_ms()
        self._written_ms = 0

    def write(self, state: str, figures: list[Figures], reason: str | None = None) -> None:
        now_ms = self._clock.now_ms()
        if state == "running" and now_ms - self._written_ms < INTERVAL_MS:
            return
        self._written_ms = now_ms
        self._folder.write_status(
            {
                "pipeline": self._pipeline.name,
                "file": self._pipeline.file,
                "state": state,
                "reason": reason,
                "pid": process_id(),
                "host": host_name(),
                "bootstrap": self._bootstrap,
                "started_ms": self._started_ms,
                "updated_ms": now_ms,
                "queries": [one.document() for one in figures],
            }
        )
