"""Which write it is, and what a task tells the driver: names and numbers, never data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from headpond.ports import Random
from headpond.spark.sink.options import SinkOptions
from headpond.spark.sink.staging import ONE_WRITE, StagedFile

PREFIX = "spark-sink-"
"""Of transactional ids and of the groups that hold markers: for ACLs with a prefix."""


class Write(NamedTuple):
    """One micro-batch of a query, one version of an application's write, or one write that is nobody's."""

    transactional_id: str
    """And the name of the group whose offset is the marker."""
    folder: str
    number: int
    """The micro-batch, or the version."""
    is_marked: bool
    is_stream: bool
    may_skip_older: bool = False
    """Whether one with a smaller number than the last that was written is taken for written, as in Delta. Numbers of
    micro-batches come again with other rows once a checkpoint was set back: those are refused."""

    def __str__(self) -> str:
        if self.is_stream:
            return f"micro-batch {self.number} of the query {self.transactional_id.removeprefix(PREFIX)}"
        return (
            f"version {self.number} of {self.transactional_id.removeprefix(PREFIX)}" if self.is_marked else "the write"
        )


def query_transactional_id(query_id: str) -> str:
    return PREFIX + query_id


def application_id(app_id: str, topic: str | None) -> str:
    """The transactional id of an application's write. A version counts for one topic, as it counts for one table in
    Delta: foreachBatch writes the same version of the same application to several."""
    return PREFIX + (app_id if topic is None else f"{app_id}/{topic}")


def write_of_query(query_id: str, batch_id: int) -> Write:
    return Write(query_transactional_id(query_id), query_id, batch_id, is_marked=True, is_stream=True)


def write_of_batch(options: SinkOptions, random: Random) -> Write:
    if options.app_id is not None and options.version is not None:
        name = application_id(options.app_id, options.topic)
        folder = "app-" + hashlib.sha256(name.removeprefix(PREFIX).encode()).hexdigest()[:32]
        return Write(name, folder, options.version, True, is_stream=False, may_skip_older=options.skips_older)
    name = random.random_bytes(16).hex()
    return Write(PREFIX + ONE_WRITE + name, ONE_WRITE + name, 0, is_marked=False, is_stream=False)


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    write: Write
    rows: int
    file: StagedFile | None
    """None: there were no rows, or they are in the topics already (delivery at-least-once)."""
