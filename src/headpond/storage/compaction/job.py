"""What the broker asks of the worker process, and what comes back step by step. Plain values: they cross a pipe.

The loop packs a job for the pipe. So whatever a log may have many of crosses as bytes, in the form of Kafka's files,
which takes no time: 20,000 producers as objects held everybody up for 50 ms.
"""

from __future__ import annotations

from typing import NamedTuple


class SegmentToClean(NamedTuple):
    base_offset: int
    end_offset: int  # exclusive: where the next segment begins
    size_bytes: int


class CleaningJob(NamedTuple):
    path: str
    segments: list[SegmentToClean]  # in order, all finished, from the log's start to the first uncleanable offset
    first_dirty_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes_max: int
    index_bytes_max: int
    index_interval_bytes: int
    map_bytes_max: int
    read_bytes: int
    producers: bytes  # as in a snapshot file: the last batch of each is not to be forgotten
    aborted: bytes  # as in a transaction index, of all segments


class Progress(NamedTuple):
    """So many bytes were read and written since the last one. The cleaning goes on when it is asked to."""

    size_bytes: int


class CleanedSegment(NamedTuple):
    """Its ``.cleaned`` files are complete and durable; it may take the place of those with the base offsets
    ``replaces``, the first of which is its own."""

    replaces: list[int]
    end_offset: int
    size_bytes: int
    first_timestamp: int | None
    max_timestamp: int
    max_timestamp_offset: int
    aborts_gone: list[int]  # of the log's aborted transactions, those (by their ends) of which nothing is left


class Cleaned(NamedTuple):
    """The last step: everything below ``first_dirty_offset`` has been cleaned."""

    first_dirty_offset: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int


Step = Progress | CleanedSegment | Cleaned
