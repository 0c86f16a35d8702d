"""A member of a group that is gone without a word stays a member for ever.

Promise  a member that is silent for its session loses its partitions to the others.
Found    members that vanish, in both protocols: the group is not at rest in the end, or waits for ever.
"""

from __future__ import annotations

from headpond.coordination.groups.classic.rebalance import Rebalances
from headpond.coordination.groups.consumer.sessions import Sessions
from headpond.coordination.groups.deadline import NOTHING
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("members", "consumer members"))


def plant(patch: Patch) -> None:
    patch.set(Rebalances, "expire_session", lambda self, group, member_id: NOTHING)
    patch.set(Sessions, "_is_still_expired", lambda self, key, timer: False)
