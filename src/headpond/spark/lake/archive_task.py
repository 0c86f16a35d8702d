"""A task of archive: reads its ranges of a topic and writes them to files, in one process."""

from __future__ import annotations

import msgspec

from headpond.runtime.environment import host_name
from headpond.runtime.files import DiskFileSystem
from headpond.spark.lake.archive_plan import Part
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.files import COLUMNS, DateFiles, FileTarget, Written
from headpond.spark.lake.store import Lake


class ArchiveWork(msgspec.Struct, frozen=True):
    source: dict[str, str]
    """Options of the source."""
    lake_id: str
    topic_id: bytes | None
    parts: list[Part]
    target: FileTarget


class ArchiveAnswer(msgspec.Struct, frozen=True):
    files: list[Written]
    records: int
    size_bytes: int
    """Of keys, values and headers as rows."""


def archive_parts(work: ArchiveWork) -> ArchiveAnswer:
    from headpond.model import TopicPartition
    from headpond.spark.reading.options import parse_options
    from headpond.spark.reading.planning import OffsetRange
    from headpond.spark.reading.range_reader import read_range

    check_lake(work.target.lake, work.lake_id)
    options = parse_options(work.source, is_stream=False)
    files = DateFiles(work.target, DiskFileSystem())
    records = size_bytes = 0
    for part in work.parts:
        wanted = OffsetRange(TopicPartition(work.target.topic, part.partition), part.from_offset, part.end_offset)
        for rows in read_range(options, wanted, work.topic_id, COLUMNS):
            files.add(rows)
            records += rows.num_rows
            size_bytes += rows.nbytes
    return ArchiveAnswer(files.close(), records, size_bytes)


def check_lake(path: str, lake_id: str) -> None:
    """That this node sees the very folder that the driver sees."""
    lake = Lake(path)
    if not lake.exists or lake.mark().id != lake_id:
        raise LakeError(f"the lake {path} is not on {host_name()}: it must be a folder that all nodes share")
