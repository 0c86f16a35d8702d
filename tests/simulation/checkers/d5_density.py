"""D5, R7: the offsets of a log are in order, and have no gaps unless it was compacted.

As read and on disk: batches follow each other with growing offsets, and so do the records in each, inside its range.
Where the topic was never compacted, each batch begins where the one before ends and has a record for every offset;
what is read begins at the log start, or with the batch that holds it, and ends at the high watermark.

Exempt   gaps, where the topic was compacted at some time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from simulation.checkers.evidence.policies import Policies
from simulation.history import Batch, FinalLog, History


def check(history: History) -> Iterator[str]:
    compacted = Policies(history).compacted
    for place, log in history.final_logs.items():
        is_dense = place.topic not in compacted
        for batches, where in ((log.fetched, f"{place} as read"), (log.on_disk, f"{place} on disk")):
            yield from _in_order(batches, where, is_dense=is_dense)
        if is_dense:
            yield from _whole(log)


def _in_order(batches: tuple[Batch, ...], where: str, *, is_dense: bool) -> Iterator[str]:
    next_offset = -1
    for batch in batches:
        if batch.base_offset < next_offset:
            yield f"{where} has a batch at offset {batch.base_offset} behind one that ends at {next_offset - 1}"
        elif is_dense and batch.base_offset > next_offset >= 0:
            yield f"{where} has no batch for the offsets {next_offset} to {batch.base_offset - 1}"
        next_offset = batch.last_offset + 1
        yield from _records_in_order(batch, where, is_dense=is_dense)


def _records_in_order(batch: Batch, where: str, *, is_dense: bool) -> Iterator[str]:
    offsets = [seen.offset for seen in batch.records]
    if offsets == [*range(batch.base_offset, batch.last_offset + 1)] or (batch.control and not offsets):
        return
    is_growing = all(one < next_one for one, next_one in pairwise(offsets))
    is_inside = not offsets or (offsets[0] >= batch.base_offset and offsets[-1] <= batch.last_offset)
    if is_dense or not is_growing or not is_inside:
        span = f"{batch.base_offset} to {batch.last_offset}"
        yield f"{where} has a batch of the offsets {span} with records at {offsets[:10]}"


def _whole(log: FinalLog) -> Iterator[str]:
    start, end = log.log_start_offset, log.high_watermark
    if not log.fetched:
        if start != end:
            yield f"{log.place} as read is empty, though its log start is {start} and its high watermark {end}"
        return
    first, last = log.fetched[0], log.fetched[-1]
    if not first.base_offset <= start <= first.last_offset:
        yield f"{log.place} as read begins with offset {first.base_offset}, its log start is {start}"
    if last.last_offset + 1 != end:
        yield f"{log.place} as read ends with offset {last.last_offset}, its high watermark is {end}"
