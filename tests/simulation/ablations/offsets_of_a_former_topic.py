"""A topic that is made anew has the committed offsets of the deleted one.

Promise  offsets are a topic's own: with it they are gone, whoever comes after it under its name.
Found    a deletion, the topic made anew, a fetch of offsets; no faults are needed.
"""

from __future__ import annotations

from headpond.coordination.groups import offsets
from headpond.coordination.groups.machine import GroupMachine
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import ClockDrift

SCENARIO = Scenario(
    workloads=("offsets", "admin"),
    topics=("passing",),
    partitions=1,
    # The administrator's pauses are shorter: more topics are deleted and made anew.
    draw=one_after_the_other(lambda chance, at_s: ClockDrift(at_s, "c-admin", 3.0, 3.0), gap_s=(0.0, 0.0), times=6),
)


def plant(patch: Patch) -> None:
    patch.set(offsets, "_is_of_another", lambda committed, topic_id: False)
    patch.set(GroupMachine, "forget_topics", lambda self, names: None)
