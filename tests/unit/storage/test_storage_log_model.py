"""PartitionLog against a plain list: appends, reads, searches by time, truncation, retention, restarts, kills and power
cuts, in any order; after each start what is read, sought or deleted first may be any of them."""

from __future__ import annotations

import asyncio
from bisect import bisect_right

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from headpond.storage.log.segment import Segment
from support.batches import Batch, split
from unit.storage.model_rig import DEATHS, READ, SEEK, Death, StorageModel, model_settings
from unit.storage.storage_rig import CONFIG, NOW_MS, make_batch, read_all, read_now

SMALL = msgspec.structs.replace(CONFIG, segment_bytes=700, index_interval_bytes=90)
SIZES = st.tuples(st.integers(1, 4), st.integers(0, 90), st.sampled_from([0, -3, 3, -20, 40]))
"""Of a batch: records, bytes of each, and how far its timestamp is from its place in the order."""


class LogModel(StorageModel):
    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch] = []  # everything that was appended and not truncated, deleted ones too
        self.log_start_offset = 0
        self.epoch = 0

    @initialize()
    def open(self) -> None:
        self.open_with(config=SMALL)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.log_start_offset

    @rule(sizes=st.lists(SIZES, min_size=1, max_size=6), flush=st.booleans(), checkpoint=st.booleans())
    def append(self, sizes: list[tuple[int, int, int]], flush: bool, checkpoint: bool) -> None:
        for each in sizes:
            self._append(*each, flush=flush)
        if checkpoint:
            self.checkpoint()

    @rule(growth=st.lists(st.lists(SIZES, min_size=1, max_size=3), min_size=1, max_size=4), death=DEATHS)
    def grow_and_die(self, growth: list[list[tuple[int, int, int]]], death: Death) -> None:
        """With a checkpoint after each step but the last."""
        for sizes in growth[:-1]:
            self.append(sizes, flush=True, checkpoint=True)
        self.append(growth[-1], flush=True, checkpoint=False)
        self.die_in_the_middle(death)

    def _append(self, count: int, value_bytes: int, skew: int, *, flush: bool) -> None:
        self.number += 1
        batch = make_batch(count, value_bytes=value_bytes, mark=self.number, timestamp_ms=NOW_MS + self.number + skew)
        end_offset = self.end_offset
        appended = self.run(self.rig.append(self.log, batch, epoch=self.epoch, flush=flush))
        assert appended.base_offset == end_offset
        stamped = end_offset.to_bytes(8, "big") + batch[8:12] + self.epoch.to_bytes(4, "big") + batch[16:]
        self.batches += split(stamped)
        if flush:
            self.flushed_end_offset = self.end_offset

    @rule()
    def next_epoch(self) -> None:
        self.epoch += 1

    @rule(where=st.floats(0, 1), limit=st.integers(0, 700), end=st.floats(0, 1), at_least_one=st.booleans())
    def read(self, where: float, limit: int, end: float, at_least_one: bool) -> None:
        start, stop = self.log_start_offset, self.end_offset
        from_offset = start + round((stop - start) * where)
        up_to = start + round((stop - start) * end)
        arguments = {"up_to_end_offset": up_to, "size_bytes_max": limit, "at_least_one_batch": at_least_one}
        read = read_now(self.log, from_offset, **arguments) or self.run(self.log.read_cold(from_offset, **arguments))
        got = list(split(bytes(read.data)))
        assert sum(len(batch.data) for batch in got) == len(read.data)
        first = bisect_right([batch.last_offset for batch in self.batches], from_offset - 1)
        assert got == self.batches[first : first + len(got)]
        assert all(batch.last_offset < up_to for batch in got)
        assert len(read.data) <= limit or (at_least_one and len(got) == 1)
        assert read.next_offset == (got[-1].last_offset + 1 if got else from_offset)
        following = self.batches[first] if first < len(self.batches) else None
        if not got and following is not None and following.last_offset < up_to:
            assert not at_least_one and len(following.data) > limit

    def look_around(self, looks: list[str]) -> None:
        for look in looks:
            if look == READ:
                self.everything_is_there()
            elif look == SEEK:
                for timestamp in sorted({batch.max_timestamp for batch in self._visible()}):
                    self._search_by_time(timestamp)
                self.search_largest_timestamp()
            else:
                for segment in list(self.log.segments)[: 1 + self.number % 3]:
                    if held := self._held(segment):
                        self._retain(from_ms=max(batch.max_timestamp for batch in held))  # it stays, but only just

    @rule(timestamp=st.integers(-25, 90))
    def search_by_time(self, timestamp: int) -> None:
        self._search_by_time(NOW_MS + timestamp)

    def _search_by_time(self, target: int) -> None:
        found = self.run(self.log.offset_for_timestamp(target, up_to_end_offset=self.end_offset))
        expected = None
        for batch in self.batches:  # the records of a batch all have its timestamp
            if batch.last_offset >= self.log_start_offset and batch.max_timestamp >= target:
                expected = max(batch.base_offset, self.log_start_offset), batch.max_timestamp, batch.leader_epoch
                break
        assert expected == (None if found is None else (found.offset, found.timestamp, found.leader_epoch))

    @rule()
    def search_largest_timestamp(self) -> None:
        largest = max((batch.max_timestamp for batch in self.batches), default=None)
        first = next((batch for batch in self.batches if batch.max_timestamp == largest), None)
        if first is None or first.base_offset < self.log_start_offset:
            return  # a log forgets what was deleted with the segment that held it, not before
        found = self.run(self.log.max_timestamp(up_to_end_offset=self.end_offset))
        assert found is not None and (found.offset, found.timestamp) == (first.base_offset, largest)

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        start = max(self.log_start_offset, self.log.segments[0].base_offset if self.log.segments else 0)
        offset = start + round((self.end_offset - start) * where)
        end_offset = self.end_offset
        self.run(self.log.truncate_to(offset))
        while self.batches and self.batches[-1].last_offset >= offset:
            self.batches.pop()
        if self.end_offset <= self.log_start_offset and offset < end_offset:
            # Nothing is left to be read: the log begins anew where it was cut.
            self.batches.clear()
            self.log_start_offset = offset
        self.flushed_end_offset = min(self.flushed_end_offset, self.log.log_end_offset)

    @rule(where=st.floats(0, 1))
    def delete_records(self, where: float) -> None:
        visible = max(0, self.log.flushed_end_offset - self.log_start_offset)
        self.log_start_offset += round(visible * where)
        self.run(self.log.advance_log_start(self.log_start_offset))

    @rule(retention_bytes=st.integers(0, 2_000))
    def retention(self, retention_bytes: int) -> None:
        self.rig.reconfigure(retention_bytes=retention_bytes)
        self.run(self.log.delete_old_segments(self.rig.clock.now_ms()))
        self.rig.reconfigure(retention_bytes=None)
        assert self.log.log_start_offset >= self.log_start_offset
        assert self.log.log_start_offset <= max(self.log.flushed_end_offset, self.log_start_offset)
        self.log_start_offset = self.log.log_start_offset
        self._let_files_go()

    @rule(timestamp=st.integers(-25, 90))
    def retention_by_time(self, timestamp: int) -> None:
        self._retain(from_ms=NOW_MS + timestamp)

    def _retain(self, *, from_ms: int) -> None:
        """D5: the oldest segments go if all that they hold is earlier than ``from_ms``, and no other."""
        expected = self.log_start_offset
        segments = list(self.log.segments)
        for segment in segments:
            held = self._held(segment)
            if segment.end_offset > self.log.flushed_end_offset or (segment is segments[-1] and not held):
                break
            is_below_start = segment.end_offset <= self.log_start_offset and segment is not segments[-1]
            if not is_below_start and max(batch.max_timestamp for batch in held) >= from_ms:
                break
            expected = max(expected, segment.end_offset)
        self.rig.reconfigure(retention_ms=60_000)
        self.run(self.log.delete_old_segments(from_ms + 60_000))
        self.rig.reconfigure(retention_ms=None)
        assert self.log.log_start_offset == expected
        self.log_start_offset = expected
        self._let_files_go()

    def _held(self, segment: Segment) -> list[Batch]:
        return [batch for batch in self.batches if segment.base_offset <= batch.base_offset < segment.end_offset]

    def _let_files_go(self) -> None:
        async def let_files_go() -> None:
            self.rig.clock.advance(2)
            await asyncio.sleep(0)

        self.run(let_files_go())

    def found_again(self, *, all_of_it: bool) -> None:
        end_offset = self.log.log_end_offset
        if all_of_it:
            assert end_offset == self.end_offset
        while self.batches and self.batches[-1].last_offset >= end_offset:
            self.batches.pop()

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        assert log.flushed_end_offset <= log.log_end_offset
        assert (log.log_start_offset, log.log_end_offset) == (self.log_start_offset, self.end_offset)
        assert log.flushed_end_offset >= self.flushed_end_offset
        visible = self._visible()
        assert self.run(read_all(log, size_bytes_max=500)) == visible
        epochs = [batch.leader_epoch for batch in visible]
        assert epochs == sorted(epochs)
        for batch in visible:
            assert log.epochs.epoch_for(max(batch.base_offset, self.log_start_offset)) == batch.leader_epoch

    def _visible(self) -> list[Batch]:
        return [batch for batch in self.batches if batch.last_offset >= self.log_start_offset]


TestLogModel = LogModel.TestCase
TestLogModel.settings = model_settings(100)
