"""A segment's age is that of its oldest record, not of its newest.

Promise  records younger than retention.ms stay.
Found    a segment that is filled for some seconds: its newest records go with the first ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headpond.storage.log import retention
from headpond.storage.log.segment import Segment
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers"),
    topics=("short",),
    configs=(("segment.ms", "604800000"), ("internal.segment.bytes", "100000")),
)


class _Oldest:
    """A segment whose newest record is its first one."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.max_timestamp = segment.first_timestamp if segment.max_timestamp is not None else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._segment, name)


def plant(patch: Patch) -> None:
    doomed = retention.doomed

    def hasty(segments: Sequence[Segment], *args: Any, **others: Any) -> Any:
        verdict = doomed([_Oldest(each) for each in segments], *args, **others)  # type: ignore[misc]
        return verdict._segment if isinstance(verdict, _Oldest) else verdict

    patch.set(retention, "doomed", hasty)
