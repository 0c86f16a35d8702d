"""D2: the index files agree with the batches that lie in the log files.

Offset index   each entry holds the last offset of a batch of its segment, and the position at which it starts. Both
               strictly increase
Time index     each entry holds the largest timestamp of its segment so far, and the last offset of the batch that has
               it: no batch before that one has as large a timestamp. Timestamps strictly increase

Exempt   entries that are missing: an index has one entry per some bytes, and is written behind the log
         entries in which a bit was flipped, as long as nobody was led astray by them: whoever is has the index rebuilt.
         What answers they lead to is judged by C1, C2 and C4
         the timestamp of a batch of which compaction left only the header: it is that of records that are gone
The files have to be read after a clean stop: whatever a crash leaves is not believed by the next start either.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from simulation.history import BatchPosition, History, IndexEntry, Place

SegmentName = tuple[Place, int]


def check(history: History) -> Iterator[str]:
    batches: dict[SegmentName, list[BatchPosition]] = defaultdict(list)
    for batch in history.batch_positions:
        batches[batch.place, batch.segment_base_offset].append(batch)
    entries: dict[tuple[str, SegmentName], list[IndexEntry]] = defaultdict(list)
    for entry in history.index_entries:
        entries[entry.kind, (entry.place, entry.segment_base_offset)].append(entry)
    hollow = {
        (place, batch.base_offset)
        for place, log in history.final_logs.items()
        for batch in log.on_disk
        if not batch.records
    }
    for (kind, name), in_order in entries.items():
        in_file = sorted(batches[name], key=lambda batch: batch.position)
        if kind == "index":
            yield from _offset_index(in_order, in_file)
        else:
            full = [batch for batch in in_file if (batch.place, batch.base_offset) not in hollow]
            yield from _time_index(in_order, full)


def _offset_index(entries: Sequence[IndexEntry], batches: Sequence[BatchPosition]) -> Iterator[str]:
    at_position = {batch.position: batch for batch in batches}
    before: IndexEntry | None = None
    for entry in entries:
        batch = at_position.get(entry.position)
        if batch is None:
            yield f"{_entry(entry)}, where no batch starts"
        elif batch.last_offset != entry.key:
            yield f"{_entry(entry)}, where the batch of offsets {batch.base_offset} to {batch.last_offset} starts"
        if before is not None and (entry.key <= before.key or entry.position <= before.position):
            yield f"{_entry(entry)}, behind the entry for offset {before.key} at position {before.position}"
        before = entry


def _entry(entry: IndexEntry) -> str:
    segment = f"segment {entry.segment_base_offset} of {entry.place}"
    if entry.kind == "index":
        return f"the offset index of {segment} has offset {entry.key} at position {entry.position}"
    return f"the time index of {segment} has timestamp {entry.key} at offset {entry.position}"


def _time_index(entries: Sequence[IndexEntry], batches: Sequence[BatchPosition]) -> Iterator[str]:
    last_offsets = [batch.last_offset for batch in batches]
    largest_before = [-1]
    for batch in batches:
        largest_before.append(max(largest_before[-1], batch.max_timestamp_ms))
    before: IndexEntry | None = None
    for entry in entries:
        slot = bisect_left(last_offsets, entry.position)
        if slot == len(batches) or last_offsets[slot] != entry.position:
            yield f"{_entry(entry)}, which is not the last offset of a batch"
        elif batches[slot].max_timestamp_ms != entry.key:
            yield f"{_entry(entry)}, whose batch has timestamp {batches[slot].max_timestamp_ms}"
        elif largest_before[slot] >= entry.key:
            yield f"{_entry(entry)}, though an earlier batch has timestamp {largest_before[slot]}"
        if before is not None and (entry.key <= before.key or entry.position < before.position):
            yield f"{_entry(entry)}, behind the entry for timestamp {before.key} at offset {before.position}"
        before = entry
