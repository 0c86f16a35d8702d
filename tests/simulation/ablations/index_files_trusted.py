"""Index files are believed as they are found, after a crash as well: nobody looks whether they lead to a batch.

Promise  indexes are hints: what is wrong with them costs time, never data.
Found    a bit of the growing segment's index flips while the broker is down: recovery goes on in the middle of a batch
         and cuts the log there, or a search by time begins too late. A clean stop before it has written the index.
Besides  a bit that flips in the middle of a finished segment's time index is believed, as in Kafka: not in here.
"""

from __future__ import annotations

from headpond.ports import File
from headpond.storage.log.offset_index import OffsetIndex
from headpond.storage.log.time_index import TimeIndex
from headpond.storage.recovery import index_files
from headpond.storage.recovery.index_files import IndexFiles
from headpond.storage.recovery.scan import ScannedSegment
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import RottenIndex, Stop

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers"),
    topics=("lasting",),
    partitions=1,
    configs=(("index.interval.bytes", "0"), ("internal.segment.bytes", "100000")),
    settings=(("log.roll.ms", "604800000"),),
    draw=one_after_the_other(
        lambda chance, at_s: Stop(at_s, 0.1),
        lambda chance, at_s: RottenIndex(at_s, chance.randrange(1 << 30)),
        gap_s=(0.6, 1.0),
        times=12,
    ),
)


def _resume(file: File, size_bytes: int, index: OffsetIndex, time_index: TimeIndex) -> ScannedSegment:
    if not len(index):
        return ScannedSegment.empty(index.base_offset)
    timestamp, timestamp_offset = time_index.last
    return ScannedSegment(
        index.base_offset,
        index,
        time_index,
        position=index.last_position,
        next_offset=index.base_offset,
        first_timestamp=timestamp,
        max_timestamp=timestamp,
        max_timestamp_offset=timestamp_offset,
        bytes_since_entry=1 << 31,
        index_entries_on_disk=len(index),
        time_entries_on_disk=len(time_index),
    )


def _trusted_part(
    files: IndexFiles, file: File, size_bytes: int, *, scan_from: int, recovery_point: int, lag_bytes: int
) -> ScannedSegment:
    index = files.offset_index.copy()
    index.truncate(scan_from)
    return _resume(file, size_bytes, index, files.time_index.copy())


def plant(patch: Patch) -> None:
    patch.set(index_files, "resume", _resume)
    patch.set(index_files, "trusted_part", _trusted_part)
    patch.set(index_files, "_are_whole", lambda files, end_offset: True)
