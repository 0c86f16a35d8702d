"""What an audit finds in the headers of batches: gaps, repeated sequences, transactions."""

from __future__ import annotations

import pytest

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.control import build_end_txn_marker, read_end_txn_marker
from headpond.protocol.records.header import BatchHeader, read_header
from headpond.protocol.records.record import Record
from headpond.spark.lake.audit_batches import BatchFacts, BatchWalk, Duplicate, Gap
from headpond.spark.lake.audit_findings import findings_of


def header(
    base_offset: int,
    count: int = 1,
    *,
    sequence: int = -1,
    producer: int = -1,
    epoch: int = 0,
    room: int | None = None,
    is_transactional: bool = False,
) -> BatchHeader:
    records = [Record(base_offset + number, 0, None, b"x") for number in range(count)]
    made = read_header(build_batch(records, base_offset=base_offset))
    return made._replace(
        last_offset_delta=(room or count) - 1,
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence,
        attributes=made.attributes | (0x10 if is_transactional else 0),
    )


def walk(headers: list[BatchHeader], *, from_offset: int = 0, end_offset: int | None = None) -> BatchFacts:
    walking = BatchWalk(from_offset)
    for one in headers:
        walking.take(one, 100, None)
    return walking.end(end_offset if end_offset is not None else headers[-1].last_offset + 1)


def test_a_log_without_gaps_has_none() -> None:
    facts = walk([header(0, 3), header(3, 2), header(5)])
    assert facts.missing == 0 and facts.gaps == []
    assert (facts.batches, facts.records, facts.size_bytes) == (3, 6, 300)


def test_offsets_are_missed_between_batches_inside_of_them_and_at_the_end() -> None:
    facts = walk([header(2, 3), header(8, 2, room=5)], end_offset=15)
    assert facts.missing_between == 2 + 3 + 2 and facts.missing_inside == 3
    assert facts.gaps == [Gap(0, 2), Gap(5, 8), Gap(13, 15)]


def test_a_sequence_that_comes_again_is_a_duplicate() -> None:
    facts = walk(
        [
            header(0, 3, producer=7, sequence=0),
            header(3, 2, producer=7, sequence=3),
            header(5, 2, producer=7, sequence=3),
            header(7, 1, producer=7, sequence=5),
        ]
    )
    assert facts.duplicate_records == 2
    assert facts.duplicates == [Duplicate(7, 0, 3, 5, 2)]
    assert facts.sequence_gaps == 0


def test_producers_epochs_and_the_end_of_numbers_are_told_apart() -> None:
    last = (1 << 31) - 1
    facts = walk(
        [
            header(0, producer=1, sequence=last),
            header(1, producer=1, sequence=0),  # after the last number comes 0
            header(2, producer=2, sequence=0),
            header(3, producer=2, sequence=0, epoch=1),  # a new epoch begins anew
            header(4, producer=2, sequence=1, epoch=0),  # and ends the old one
            header(5, producer=2, sequence=5, epoch=1),
            header(6),
            header(7),
        ]
    )
    assert facts.duplicate_records == 0
    assert (facts.producers, facts.old_epochs, facts.sequence_gaps) == (2, 1, 1)


def test_markers_decide_what_was_aborted() -> None:
    walking = BatchWalk(0)
    for offset, count, producer, is_abort in ((0, 2, 1, True), (3, 5, 2, False), (9, 3, 1, None)):
        walking.take(header(offset, count, producer=producer, sequence=offset, is_transactional=True), 10, None)
        if is_abort is not None:
            marker = build_end_txn_marker(
                producer_id=producer, producer_epoch=0, is_abort=is_abort, coordinator_epoch=0, timestamp=0
            )
            at = read_header(marker)._replace(base_offset=offset + count)
            walking.take(at, 10, read_end_txn_marker(marker))
    facts = walking.end(12)
    assert (facts.commit_markers, facts.abort_markers) == (1, 1)
    assert (facts.aborted_records, facts.open_records, facts.records) == (2, 3, 10)
    assert facts.missing == 0, "a marker has an offset of its own"


def test_missing_offsets_are_a_fault_unless_the_topic_is_compacted() -> None:
    for module in ("pyarrow", "numba"):
        pytest.importorskip(module)
    from headpond.spark.lake.audit import TopicAudit
    from headpond.spark.lake.audit_rows import RowFacts
    from headpond.spark.lake.audit_task import PartitionFacts

    facts = walk([header(0, 2), header(5, 2)])

    def findings(policy: str) -> list[tuple[bool, str]]:
        part = PartitionFacts(0, 0, 7, facts, RowFacts(sizes=[]))
        audit = TopicAudit("orders", policy, 4, 0, 0, [], True, [part], None, [])
        return [(one.is_fault, one.sentence) for one in findings_of(audit)]

    assert findings("delete") == [(True, "orders-0: 3 offsets are missing, and the topic is not compacted, as 2 to 4")]
    assert findings("compact,delete") == [
        (False, "orders-0: 3 offsets are missing, as compaction leaves it (loss would look the same)")
    ]
