"""A topic that is made anew has the committed offsets of the deleted one.

Promise  offsets are a topic's own: with it they are gone, whoever comes after it under its name.
Found    a deletion, the topic made anew, a fetch of offsets; no faults are needed.
"""

from __future__ import annotations

from headpond.coordination.groups import offsets
from headpond.coordination.groups.machine import GroupMachine
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("offsets", "admin"), topics=("lasting", "passing"), partitions=1)


def plant(patch: Patch) -> None:
    patch.set(offsets, "_is_of_another", lambda committed, topic_id: False)
    patch.set(GroupMachine, "forget_topics", lambda self, names: None)
