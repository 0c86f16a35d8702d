"""A member of a consumer group counts as having given up what it was told to, before it says so (KIP-848).

Promise  a partition has one owner at any time.
Found    a member that learns late what it has to give up, on a slow link, while another one gets it.
"""

from __future__ import annotations

from headpond.coordination.groups.consumer import reconciliation
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import ClockDrift, SlowLink

SCENARIO = Scenario(
    workloads=("consumer members",),
    topics=("lasting", "compacted"),
    partitions=12,
    settings=(("group.consumer.heartbeat.interval.ms", "200"),),
    draw=one_after_the_other(
        lambda chance, at_s: SlowLink(at_s, "b1", "c-consumer members", 3.0, 0.3),
        lambda chance, at_s: SlowLink(at_s, "c-consumer members", "b1", 3.0, 0.3),
        # They come and go more often.
        lambda chance, at_s: ClockDrift(at_s, "c-consumer members", 1.5, 3.0),
        gap_s=(0.0, 0.0),
        times=9,
    ),
)


def plant(patch: Patch) -> None:
    patch.set(reconciliation, "_still_owns", lambda owned, held: False)
