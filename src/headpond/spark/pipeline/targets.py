"""What the targets of a pipeline hold already: checked against its checkpoints before anything is written."""

from __future__ import annotations

from headpond.spark.kafka.client_settings import ClientSettings
from headpond.spark.pipeline.folder import Folder
from headpond.spark.pipeline.markers import check_markers, markers_of, read_markers
from headpond.spark.pipeline.model import Pipeline, Sink
from headpond.spark.pipeline.places import check_around
from headpond.spark.pipeline.tables import check_table, written_to_table
from headpond.spark.pipeline.upsert import check_versions
from headpond.spark.pipeline.versions import Versions


class Targets:
    """``identity``: of the pipeline's folder; None: it has none yet."""

    def __init__(self, pipeline: Pipeline, folder: Folder, identity: str | None, settings: ClientSettings) -> None:
        self._pipeline = pipeline
        self._folder = folder
        self._identity = identity
        self._settings = settings
        self.written: dict[str, int] = {}
        """Query -> the last batch that its target holds; filled by ``check``."""

    def check(self) -> None:
        """``WrongFolder`` for a target that is another's, or that holds batches which the checkpoint does not know."""
        for sink in self._pipeline.sinks:
            if sink.kind == "parquet":
                self._check_table(sink)
        groups = markers_of(self._pipeline, self._folder, self._identity)
        markers = read_markers(self._settings, groups)
        check_markers(self._pipeline, self._folder, markers)
        self.written |= markers

    def _check_table(self, sink: Sink) -> None:
        checkpoint = self._folder.checkpoint(sink.name)
        check_around(sink.target, f"{sink.place}: sink {sink.name}: ")
        if sink.upsert:
            check_versions(sink, self._identity, checkpoint)
        else:
            check_table(sink, checkpoint)
        self.written[sink.name] = written_to(sink, self._identity)


def written_to(sink: Sink, identity: str | None) -> int:
    """The last batch that a table holds; -1: none."""
    return Versions(sink.target, identity).written() if sink.upsert else written_to_table(sink)


def last_written(sink: Sink, folder: Folder, identity: str | None) -> int:
    """The same, also for a table that can't be looked into from here."""
    return max(written_to(sink, identity), folder.checkpoint(sink.name).committed)
