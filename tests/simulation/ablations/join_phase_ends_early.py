"""A classic group's join phase is over when the first member has joined: the others are put out.

Promise  a partition has one owner at any time: a member has given up what it had before another one gets it.
Found    members that come and go; no faults are needed.
"""

from __future__ import annotations

from headpond.coordination.groups.classic.group import ClassicGroup
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("members",), settings=(("group.initial.rebalance.delay.ms", "0"),))


def plant(patch: Patch) -> None:
    patch.set(ClassicGroup, "has_all_joined", property(lambda self: self._parked_joins > 0))
