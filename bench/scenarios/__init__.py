"""All scenarios, in the order in which they run: loads on servers that stay up, then growth, starts and crashes."""

from __future__ import annotations

from ..measure import Scenario
from . import (
    bounds,
    compaction,
    durable,
    exactly_once,
    fetch_sessions,
    group_life,
    groups,
    growth,
    library,
    metrics,
    requests,
    spark_archive,
    spark_codec,
    spark_read,
    spark_sink,
    startup,
    throughput,
)

ALL: tuple[Scenario, ...] = (
    *throughput.SCENARIOS,
    *requests.SCENARIOS,
    *metrics.SCENARIOS,
    *durable.SCENARIOS,
    *exactly_once.SCENARIOS,
    *groups.SCENARIOS,
    *group_life.SCENARIOS,
    *fetch_sessions.SCENARIOS,
    *growth.SCENARIOS,
    *bounds.SCENARIOS,
    *compaction.SCENARIOS,
    *startup.SCENARIOS,
    *library.SCENARIOS,
    *spark_codec.SCENARIOS,
    *spark_read.SCENARIOS,
    *spark_archive.SCENARIOS,
    *spark_sink.SCENARIOS,
)
