"""D3, C1: what was served once never changes.

Whoever reads an offset of a partition sees the same key, value and timestamp: every poll, the final reads of both
isolation levels, and the log files. What is polled lies below the high watermark, which follows the disk
(``headpond.flush=ack``), so that no power cut can take it back and give its offset to another record.

The final read and the log files agree batch by batch too, between the log start and the high watermark.

Exempt   that a record is missing: see D1 and D5. So batches are compared only where they are in both, if the topic was
         ever compacted or has a retention: either may run between the two readings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from simulation.checkers.evidence.facts import data_of, succeeded
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import record, span
from simulation.history import Batch, FinalLog, History, Place, Poll, Seen


def check(history: History) -> Iterator[str]:
    first: dict[Place, dict[int, tuple[Seen, str | Poll]]] = defaultdict(dict)
    for place, seen_by, records in _readings(history):
        known = first[place]
        for seen in records:
            before = known.setdefault(seen.offset, (seen, seen_by))
            if before[0] != seen:
                yield (
                    f"{place} offset {seen.offset} held {record(before[0])} for {_reader(before[1])}, and "
                    f"{record(seen)} for {_reader(seen_by)}"
                )
    policies = Policies(history)
    for log in history.final_logs.values():
        yield from _files_agree(log, may_shrink=log.place.topic in policies.compacted | policies.retained)


def _readings(history: History) -> Iterator[tuple[Place, str | Poll, tuple[Seen, ...] | list[Seen]]]:
    for poll in succeeded(history, Poll):
        yield poll.place, poll, poll.records
    for place, log in history.final_logs.items():
        yield place, "the final read", data_of(log.fetched)
        yield place, "the final read_committed read", log.committed
        yield place, "the log files", data_of(log.on_disk)


def _reader(reader: str | Poll) -> str:
    return reader if isinstance(reader, str) else f"{reader.process} ({span(reader)})"


def _files_agree(log: FinalLog, *, may_shrink: bool) -> Iterator[str]:
    fetched, on_disk = _visible(log, log.fetched), _visible(log, log.on_disk)
    if not may_shrink:
        for only, where in ((fetched.keys() - on_disk.keys(), "read"), (on_disk.keys() - fetched.keys(), "on disk")):
            if only:
                yield f"{log.place} has a batch at offset {min(only)} in the end that is only {where}"
    for base_offset, batch in fetched.items():
        other = on_disk.get(base_offset)
        if other is None or batch == other:
            continue
        if not may_shrink or _without_records(batch, other) != _without_records(other, batch):
            yield (
                f"the batch at {log.place} offset {base_offset} is read as {_header(batch)}, and is {_header(other)} "
                "on disk"
            )


def _visible(log: FinalLog, batches: tuple[Batch, ...]) -> dict[int, Batch]:
    """A batch may begin before the log start: only what is visible of it is compared."""
    start, end = log.log_start_offset, log.high_watermark
    return {
        batch.base_offset: batch
        if batch.base_offset >= start
        else batch._replace(records=tuple(seen for seen in batch.records if seen.offset >= start))
        for batch in batches
        if batch.last_offset >= start and batch.base_offset < end
    }


def _without_records(batch: Batch, other: Batch) -> Batch:
    """What compaction leaves of a batch. A marker that it has emptied does not tell any more what it was."""
    control = batch.control if batch.records and other.records else ""
    return batch._replace(records=(), control=control)


def _header(batch: Batch) -> str:
    kind = f"{batch.control} marker" if batch.control else f"{len(batch.records)} records"
    return (
        f"{kind} up to offset {batch.last_offset} of producer {batch.producer_id}:{batch.producer_epoch}, "
        f"sequence {batch.base_sequence}, leader epoch {batch.leader_epoch}"
    )
