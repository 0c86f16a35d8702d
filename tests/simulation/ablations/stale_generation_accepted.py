"""A member's offset commit is taken whatever generation or epoch it names.

Promise  a member of a generation that is over can't overwrite what its successor commits.
Found    commits with the generation of some time ago; no faults are needed.
"""

from __future__ import annotations

from typing import Any

from headpond.coordination.groups.classic.group import ClassicGroup
from headpond.coordination.groups.consumer import group as consumer_group
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("members", "consumer members"))


def plant(patch: Patch) -> None:
    check_commit = ClassicGroup.check_commit

    def lenient(self: ClassicGroup, *, generation_or_epoch: int, **others: Any) -> None:
        given = self.generation if generation_or_epoch >= 0 else generation_or_epoch
        check_commit(self, generation_or_epoch=given, **others)

    patch.set(ClassicGroup, "check_commit", lenient)
    patch.set(consumer_group, "check_commit", lambda *args: None)
