"""Topic health checks. Every partition is walked from end to end; what was found becomes figures, and sentences.

A fault is what should not be: offsets missing without a reason, records that were written twice, damage, two sides that
differ. A note is what somebody should know. ``AuditReport`` holds all of it; ``audit_html.py`` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from headpond.client import Client
from headpond.client.admin import Admin, ConfigResource
from headpond.spark.kafka.link import Link
from headpond.spark.lake.archive_plan import Part
from headpond.spark.lake.audit_findings import Finding, findings_of
from headpond.spark.lake.audit_rows import KeyCount, distinct_estimate
from headpond.spark.lake.audit_task import AuditAnswer, AuditWork, PartitionFacts, audit_parts
from headpond.spark.lake.compare import Comparison, Side, compare
from headpond.spark.lake.compare_task import LakeSide, TopicSide
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.rows import files_with
from headpond.spark.lake.store import Lake
from headpond.spark.lake.tasks import on_executors
from headpond.spark.reading.cluster import earliest_offsets, latest_offsets
from headpond.spark.reading.options import parse_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNCOMMITTED = {"kafka.isolation.level": "read_uncommitted"}


@dataclass(frozen=True, slots=True)
class AuditSettings:
    source: Mapping[str, str] = field(repr=False)
    """Options of the source, without the topics."""
    topics: Sequence[str]
    top: int = 10
    against: Mapping[str, str] | None = field(default=None, repr=False)
    """Options of another cluster's source."""
    against_lake: str | None = None
    other_name: str | None = None
    by: Literal["offset", "order"] | None = None

    @property
    def is_by_offset(self) -> bool:
        return (self.by or ("order" if self.against is not None else "offset")) == "offset"


class TopicPlan(msgspec.Struct):
    topic: str
    cleanup_policy: str
    log: dict[int, tuple[int, int]]
    """Partition -> (first offset, end of the log)."""
    readable: dict[int, tuple[int, int]]
    """The same up to the last stable offset: what a consumer of committed records can read."""

    @property
    def offsets(self) -> int:
        return sum(end - start for start, end in self.log.values())


class TopicAudit(msgspec.Struct):
    topic: str
    cleanup_policy: str
    records: int
    size_bytes: int
    distinct_keys: int
    """About, to 2 %."""
    top_keys: list[KeyCount]
    are_top_keys_exact: bool
    partitions: list[PartitionFacts]
    comparison: Comparison | None
    findings: list[Finding]

    @property
    def is_well(self) -> bool:
        return not any(finding.is_fault for finding in self.findings)


def plan_topics(source: Mapping[str, str], topics: Sequence[str]) -> list[TopicPlan]:
    """Asks the brokers; reads nothing."""
    return [_plan_topic({**source, "subscribe": topic}, topic) for topic in topics]


def _plan_topic(source: Mapping[str, str], topic: str) -> TopicPlan:
    whole = parse_options({**source, **UNCOMMITTED}, is_stream=False)
    stable = parse_options(source, is_stream=False)

    async def ask(client: Client) -> TopicPlan:
        ends = (await latest_offsets(client, whole, is_complete=True)).by_partition
        stable_ends = (await latest_offsets(client, stable, is_complete=True)).by_partition
        begins = await earliest_offsets(client, ends, whole.client)
        entries = await Admin(client).describe_configs(ConfigResource("topic", topic), ["cleanup.policy"])
        policy = next((one.value for one in entries if one.name == "cleanup.policy" and one.value), "delete")
        return TopicPlan(
            topic,
            policy,
            {tp.partition: (begins[tp], end) for tp, end in sorted(ends.items())},
            {tp.partition: (begins[tp], max(begins[tp], end)) for tp, end in sorted(stable_ends.items())},
        )

    with Link(whole.client) as link:
        return link.run(ask)


class Audit:
    """Walks topics, one after the other."""

    def __init__(self, session: SparkSession, settings: AuditSettings) -> None:
        self._session = session
        self._settings = settings

    def run(self, plan: TopicPlan) -> TopicAudit:
        settings = self._settings
        there = self.other_side(plan)  # what is wrong with it is told before anything is read
        works = [
            AuditWork(
                {**settings.source, **UNCOMMITTED, "subscribe": plan.topic},
                plan.topic,
                [Part(partition, start, end)],
                settings.top,
            )
            for partition, (start, end) in plan.log.items()
        ]
        answers = on_executors(self._session, audit_parts, works, AuditAnswer)
        partitions = [one for answer in answers for one in answer.partitions]
        comparison = None
        if there is not None:
            here = _topic_side(plan.topic, settings.source, plan.topic, plan.readable)
            comparison = compare(self._session, here, there, is_by_offset=settings.is_by_offset)
        return _audited(plan, partitions, comparison, settings)

    def other_side(self, plan: TopicPlan) -> Side | None:
        settings = self._settings
        name = settings.other_name or plan.topic
        if settings.against is not None:
            (other,) = plan_topics(settings.against, [name])
            where = settings.against["kafka.bootstrap.servers"]
            return _topic_side(f"{name} at {where}", settings.against, name, other.readable)
        if settings.against_lake is None:
            return None
        lake = Lake(settings.against_lake)
        lake_id = lake.mark().id
        state = lake.state(name)
        if state is None:
            raise LakeError(f"{lake.path} does not hold topic {name}")

        def of_part(part: Part) -> LakeSide:
            spans = {part.partition: (part.from_offset, part.end_offset)}
            return LakeSide(lake.absolute_path, lake_id, files_with(state, spans))

        bounds = {partition: (reach.first_offset, reach.next_offset) for partition, reach in state.partitions.items()}
        return Side(f"{name} in {lake.path}", bounds, of_part)


def _topic_side(name: str, source: Mapping[str, str], topic: str, bounds: dict[int, tuple[int, int]]) -> Side:
    side = TopicSide({**source, "subscribe": topic}, topic)
    return Side(name, bounds, lambda part: side)


def _audited(
    plan: TopicPlan, partitions: list[PartitionFacts], comparison: Comparison | None, settings: AuditSettings
) -> TopicAudit:
    counts: dict[bytes, int] = {}
    for one in partitions:
        for key in one.rows.top:
            counts[key.key] = counts.get(key.key, 0) + key.records
    top = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: settings.top]
    audit = TopicAudit(
        topic=plan.topic,
        cleanup_policy=plan.cleanup_policy,
        records=sum(one.batches.records for one in partitions),
        size_bytes=sum(one.batches.size_bytes for one in partitions),
        distinct_keys=distinct_estimate([one.rows.registers for one in partitions]),
        top_keys=[KeyCount(key, records) for key, records in top],
        are_top_keys_exact=all(one.rows.is_exact for one in partitions),
        partitions=partitions,
        comparison=comparison,
        findings=[],
    )
    audit.findings = findings_of(audit)
    return audit
