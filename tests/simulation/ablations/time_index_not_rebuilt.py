"""After a crash a segment knows only those timestamps that its time index has: later batches are missed.

Promise  a search by time finds the first record that is as new, wherever it lies.
Found    a kill, then a search.
"""

from __future__ import annotations

from headpond.storage.log import changes
from headpond.storage.log.segment import Segment
from headpond.storage.recovery.scan import ScannedSegment
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "idempotent", "consumers"), kinds=("kill", "stop"))


def plant(patch: Patch) -> None:
    fill = changes.fill

    def half(segment: Segment, scanned: ScannedSegment) -> None:
        fill(segment, scanned)
        segment.max_timestamp, segment.max_timestamp_offset = scanned.time_index.last

    patch.set(changes, "fill", half)
