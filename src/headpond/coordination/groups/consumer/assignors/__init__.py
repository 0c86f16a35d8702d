"""Who should hold what: pure functions from members, topics and the last target to the next target."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headpond.coordination.groups.consumer.assignment import Target
from headpond.coordination.groups.consumer.assignors.ranges import assign_ranges
from headpond.coordination.groups.consumer.assignors.spec import GroupSpec, MemberSpec
from headpond.coordination.groups.consumer.assignors.uniform import assign_uniformly

__all__ = ["ASSIGNORS", "Assignor", "GroupSpec", "MemberSpec"]

Assignor = Callable[[GroupSpec], dict[str, Target]]

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
