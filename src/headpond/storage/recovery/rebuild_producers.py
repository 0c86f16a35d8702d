"""What a log's producers had written, when it is opened or was cut: a snapshot, and the batches behind it. Blocking."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from headpond.ports import FileSystem
from headpond.storage.folder import names
from headpond.storage.log.epochs import LeaderEpochs
from headpond.storage.producers.producers import BATCHES_KEPT, ProducerStates
from headpond.storage.producers.snapshot import CorruptSnapshot
from headpond.storage.recovery.scan import Collected, ScannedSegment, scan

if TYPE_CHECKING:
    from headpond.storage.recovery.recovery import FoundFolder, Recovered

_log = logging.getLogger(__name__)

WINDOW_BYTES_MAX = 8 * 1024 * 1024
WINDOW_RECORDS_MAX = 10_000
"""How far from its end a log is searched for the batches that producers may send again: some milliseconds' work."""


def load_snapshot(
    fs: FileSystem, found: FoundFolder, producers: ProducerStates, first_base: int, at_most: int | None = None
) -> int | None:
    """The newest readable snapshot that the recovery point vouches for; later ones may know batches that are gone."""
    offsets: list[int] = []
    for name in fs.list_dir(found.path):
        parsed = names.parse_file_name(name)
        if parsed is not None and parsed[1] == names.SNAPSHOT:
            offsets.append(parsed[0])
    limit = 1 << 63 if found.is_clean else found.recovery_point
    if at_most is not None:
        limit = min(limit, at_most)
    for offset in sorted(offsets, reverse=True):
        file = f"{found.path}/{names.file_name(offset, names.SNAPSHOT)}"
        if offset > limit or offset < first_base:
            fs.remove(file)
            continue
        try:
            producers.load(fs.read_file(file), offset, found.now_ms)
            return offset
        except CorruptSnapshot as error:
            _log.warning("removed the damaged producer snapshot %s: %s", file, error)
            fs.remove(file)
    return None


def widen_windows(log: Recovered) -> None:
    """A snapshot knows a producer's last batch only, but one that had several under way when the broker stopped sends
    the first of them again: find the others near the log's end, in its last segment."""
    if log.file is None or all(len(state.batches) == BATCHES_KEPT for state in log.producers.states()):
        return
    last = log.segments[-1]
    assert last.scanned is not None
    position = last.scanned.index.position_near_end(
        last.size_bytes - WINDOW_BYTES_MAX, log.log_end_offset - WINDOW_RECORDS_MAX
    )
    near_end = ScannedSegment.empty(last.base_offset)
    near_end.position = position
    producers = ProducerStates(log.producers.tp)
    collected = Collected(LeaderEpochs(), producers)
    scan(log.file, last.size_bytes, near_end, collected, interval_bytes=1 << 31, verify_from_offset=0)
    for state in producers.states():
        log.producers.widen(state)


def rebuild_producers(fs: FileSystem, found: FoundFolder, segments: list[tuple[int, int, int]]) -> ProducerStates:
    """The producers as of the end of ``segments``, given as (base offset, size, where to start reading): after a
    truncation. Snapshots above ``found.recovery_point``, the log's new end, are removed."""
    producers = ProducerStates(found.tp, expiration_ms=found.producer_expiration_ms)
    start_offset = load_snapshot(fs, found, producers, 0)
    if start_offset is None:
        producers.clear(found.log_start_offset)
    collected = Collected(LeaderEpochs(), producers, found.now_ms)
    for slot, (base, size_bytes, position) in enumerate(segments):
        if slot + 1 < len(segments) and segments[slot + 1][0] <= producers.end_offset:
            continue
        file = fs.open(f"{found.path}/{names.file_name(base, names.LOG)}", writable=False)
        try:
            scanned = ScannedSegment.empty(base)
            scanned.position = position
            scan(file, size_bytes, scanned, collected, interval_bytes=1 << 31, verify_from_offset=1 << 63)
        finally:
            file.close()
    return producers
