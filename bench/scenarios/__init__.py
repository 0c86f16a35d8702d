"""All scenarios, in the order in which they run: loads on servers that stay up, then growth, starts and crashes."""

from __future__ import annotations

from ..measure import Scenario
from . import compaction, durable, groups, growth, metrics, requests, startup, throughput

ALL: tuple[Scenario, ...] = (
    *throughput.SCENARIOS,
    *requests.SCENARIOS,
    *metrics.SCENARIOS,
    *durable.SCENARIOS,
    *groups.SCENARIOS,
    *growth.SCENARIOS,
    *compaction.SCENARIOS,
    *startup.SCENARIOS,
)
