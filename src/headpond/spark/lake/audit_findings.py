"""What is said about a topic that was audited: one sentence for each thing that somebody should know. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from headpond.spark.lake.audit import TopicAudit
    from headpond.spark.lake.audit_task import PartitionFacts

KEY_SHARE_NOTED = 0.2
"""A key with more of the records than this stands out, if there are several keys."""
PARTITION_SHARE_NOTED = 2.0
"""So does a partition with so many times the records that it would have if all had the same."""


class Finding(msgspec.Struct, frozen=True):
    is_fault: bool
    sentence: str


def findings_of(audit: TopicAudit) -> list[Finding]:
    found = []
    for one in audit.partitions:
        name = f"{audit.topic}-{one.partition}"
        found += [Finding(True, sentence) for sentence in _faults(name, one, audit.cleanup_policy)]
        found += [Finding(False, sentence) for sentence in _notes(name, one, audit.cleanup_policy)]
    found += [Finding(False, sentence) for sentence in _of_topic(audit)]
    found += _of_comparison(audit)
    return sorted(found, key=lambda finding: not finding.is_fault)


def _faults(name: str, one: PartitionFacts, policy: str) -> Iterator[str]:
    facts = one.batches
    if one.damage:
        yield f"{one.damage}; nothing behind it was audited"
    if facts.missing and "compact" not in policy:
        where = "".join(f", as {gap.from_offset} to {gap.end_offset - 1}" for gap in facts.gaps[:1])
        yield f"{name}: {facts.missing:,} offsets are missing, and the topic is not compacted{where}"
    if facts.duplicate_records:
        first = facts.duplicates[0]
        yield (
            f"{name}: {facts.duplicate_records:,} records were written twice by their producer, as sequence "
            f"{first.sequence} of producer {first.producer_id}, epoch {first.epoch}, again at offset {first.offset}"
        )


def _notes(name: str, one: PartitionFacts, policy: str) -> Iterator[str]:
    facts, rows = one.batches, one.rows
    if one.from_offset:
        yield f"{name} begins at offset {one.from_offset:,}: what was before it is deleted"
    if facts.missing and "compact" in policy:
        yield f"{name}: {facts.missing:,} offsets are missing, as compaction leaves it (loss would look the same)"
    if facts.aborted_records:
        yield f"{name}: {facts.aborted_records:,} records of aborted transactions, which consumers don't see"
    if facts.open_records:
        yield f"{name}: {facts.open_records:,} records of transactions without an end so far"
    if facts.sequence_gaps:
        yield (
            f"{name}: producers have left out numbers {facts.sequence_gaps:,} times, "
            "as they do when records of theirs were deleted or compacted"
        )
    if facts.old_epochs:
        yield f"{name}: {facts.old_epochs:,} batches of a producer's epoch that a later one had ended"
    if rows.late_records:
        yield (
            f"{name}: {rows.late_records:,} records have an earlier timestamp than one before them, "
            f"by up to {rows.late_ms_max:,} ms (offset {rows.late_offset:,})"
        )


def _of_topic(audit: TopicAudit) -> Iterator[str]:
    counts = [one.batches.records for one in audit.partitions]
    if len(counts) > 1 and sum(counts) >= 100 * len(counts):
        largest = max(range(len(counts)), key=lambda place: counts[place])
        ratio = counts[largest] * len(counts) / sum(counts)
        if ratio > PARTITION_SHARE_NOTED:
            yield (
                f"{audit.topic}-{audit.partitions[largest].partition} has {ratio:.1f} times the records that it would "
                "have if all partitions had the same"
            )
    if audit.top_keys and audit.distinct_keys > 1 and audit.records:
        share = audit.top_keys[0].records / audit.records
        if share > KEY_SHARE_NOTED:
            yield f"one key has {share:.0%} of the records: {shown_key(audit.top_keys[0].key)}"


def _of_comparison(audit: TopicAudit) -> Iterator[Finding]:
    one = audit.comparison
    if one is None:
        return
    if one.is_equal:
        yield Finding(False, f"holds the same {one.records:,} records as {one.other} (by {one.by})")
    else:
        more = ""
        if one.differences:
            first = one.differences[0]
            place = f"offset {first.place:,}" if one.by == "offset" else f"record number {first.place:,}"
            more = f": the first is {place} of partition {first.partition}, which {first.what}"
        elif one.partitions_missing:
            more = f": only one of them has partition {one.partitions_missing[0]}"
        yield Finding(True, f"differs from {one.other}{more}")
    if one.only_here or one.only_there:
        yield Finding(
            False,
            f"{one.only_here:,} offsets were not compared because {one.other} can't hold them, and {one.only_there:,} "
            "of its offsets because the topic does not hold them any more, or not yet",
        )


def shown_key(key: bytes) -> str:
    text = key.decode("utf-8", "replace")
    return repr(text) if text.isprintable() else f"0x{key.hex()}"
