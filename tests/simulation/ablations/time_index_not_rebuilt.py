"""After a crash a segment knows only those timestamps that its time index has: later batches are missed.

Promise  a search by time finds the first record that is as new, wherever it lies.
Found    a kill, then a search.
"""

from __future__ import annotations

from headpond.storage.log import changes
from headpond.storage.log.segment import Segment
from headpond.storage.recovery.scan import ScannedSegment
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import Kill, KillClient

SCENARIO = Scenario(
    workloads=("plain", "consumers"),
    topics=("lasting",),
    partitions=3,
    draw=one_after_the_other(
        lambda chance, at_s: Kill(at_s, 0.05),
        # A consumer that starts searches at once; what is appended meanwhile hides the bug.
        *[lambda chance, at_s: KillClient(at_s, "c-consumers", 0.05)] * 4,
        gap_s=(0.2, 0.3),
        times=12,
    ),
)


def plant(patch: Patch) -> None:
    fill = changes.fill

    def half(segment: Segment, scanned: ScannedSegment) -> None:
        fill(segment, scanned)
        segment.max_timestamp, segment.max_timestamp_offset = scanned.time_index.last

    patch.set(changes, "fill", half)
