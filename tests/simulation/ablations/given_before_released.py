"""A member of a consumer group gets its whole target at once, whoever holds it still (KIP-848).

Promise  a partition has one owner at any time.
Found    members that come and go; no faults are needed.
"""

from __future__ import annotations

from typing import Any

from headpond.coordination.groups.consumer import heartbeat
from headpond.coordination.groups.consumer.reconciliation import Goal
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("consumer members",))


def plant(patch: Patch) -> None:
    def greedy(epoch: int, target: Any, subscribed: Any, is_held_by_other: Any) -> Goal:
        return Goal(epoch, target, subscribed, lambda topic_id, partition: False)

    patch.set(heartbeat, "Goal", greedy)
