"""A task of audit: reads partitions from end to end, batch by batch, each whole, and answers with figures."""

from __future__ import annotations

import msgspec

from headpond.client import ClientError
from headpond.client.fetched import FetchedBatch, corrupt
from headpond.model import TopicPartition
from headpond.protocol.records.control import EndTxnMarker, read_end_txn_marker
from headpond.protocol.records.errors import CorruptBatch
from headpond.spark.lake.archive_plan import Part
from headpond.spark.lake.audit_batches import BatchFacts, BatchWalk
from headpond.spark.lake.audit_rows import RowFacts


class AuditWork(msgspec.Struct, frozen=True):
    source: dict[str, str]
    topic: str
    parts: list[Part]
    """Whole partitions: what producers have written twice is found by walking along."""
    top: int


class PartitionFacts(msgspec.Struct):
    partition: int
    from_offset: int
    end_offset: int
    batches: BatchFacts
    rows: RowFacts
    damage: str = ""
    """What can't be read, if anything: the walk ends there."""


class AuditAnswer(msgspec.Struct):
    partitions: list[PartitionFacts]


def audit_parts(work: AuditWork) -> AuditAnswer:
    return AuditAnswer([_audit(work, part) for part in work.parts])


def _audit(work: AuditWork, part: Part) -> PartitionFacts:
    from headpond.model import ErrorCode
    from headpond.spark.codec import decode_batches
    from headpond.spark.lake.audit_rows import COLUMNS, RowWalk
    from headpond.spark.lake.raw import raw_batches
    from headpond.spark.reading.options import parse_options
    from headpond.spark.reading.planning import OffsetRange

    wanted = OffsetRange(TopicPartition(work.topic, part.partition), part.from_offset, part.end_offset)
    walk, rows_walk = BatchWalk(part.from_offset), RowWalk()
    damage = ""
    try:
        for batches in raw_batches(parse_options(work.source, is_stream=False), wanted):
            for batch in batches:
                walk.take(batch.header, batch.header.size_bytes, _marker(batch))
            data = [batch for batch in batches if not batch.header.is_control and batch.header.count]
            for rows in decode_batches(data, columns=COLUMNS):
                rows_walk.take(rows)
    except ClientError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        damage = str(error)
    facts = walk.facts if damage else walk.end(part.end_offset)
    return PartitionFacts(part.partition, part.from_offset, part.end_offset, facts, rows_walk.end(work.top), damage)


def _marker(batch: FetchedBatch) -> EndTxnMarker | None:
    if not batch.header.is_control:
        return None
    try:
        return read_end_txn_marker(batch.data)
    except CorruptBatch as error:
        raise corrupt(batch.tp, batch.header.base_offset, str(error)) from error
