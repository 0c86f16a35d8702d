"""A compacted log against a plain dict: appends, tombstones, time, cleanings, truncations, restarts, power cuts.

The dict is what a consumer knows that has read everything. Beyond it: a record that was kept is one that was appended,
at its own offset; the latest record of a key never goes, unless it is a tombstone past its time; and a key that is
deleted never comes back.
"""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from headpond.config.compaction import CompactionSettings
from headpond.storage.manager import StorageConfig
from simulation.harness.turns import settle
from support.batches import Rec, build
from unit.storage.compaction_rig import COMPACTED, Kept, batches_of, compactor_of, kept, table
from unit.storage.model_rig import StorageModel, model_settings

CODEC = st.sampled_from(["none", "none", "gzip", "lz4", "zstd", "snappy"])
PAIR = st.tuples(st.integers(0, 5), st.booleans())
PRODUCER_ID = 9


class CompactionModel(StorageModel):
    def __init__(self) -> None:
        super().__init__()
        self.appended: list[Kept] = []  # not truncated, in order
        self.sequence = 0
        self.compacted_below = 0  # nothing from here on was ever in a finished segment

    @initialize(dedupe_buffer_bytes=st.sampled_from([1, 700, 1 << 20]), dirty_ratio=st.sampled_from([0.0, 0.5]))
    def open(self, dedupe_buffer_bytes: int, dirty_ratio: float) -> None:
        compaction = CompactionSettings(dedupe_buffer_bytes=dedupe_buffer_bytes, backoff_ms=1 << 40)
        self.open_with(
            config=msgspec.structs.replace(COMPACTED, min_cleanable_dirty_ratio=dirty_ratio),
            storage=StorageConfig(recovery_threads=1, compaction=compaction),
        )

    @rule(pairs=st.lists(PAIR, min_size=1, max_size=4), codec=CODEC, flush=st.booleans(), idempotent=st.booleans())
    def append(self, pairs: list[tuple[int, bool]], codec: str, flush: bool, idempotent: bool) -> None:
        self.number += 1
        now_ms = self.rig.clock.now_ms()
        first = self.log.log_end_offset
        rows = []
        for delta, (key, has_value) in enumerate(pairs):
            value = b"%d.%d" % (self.number, delta) * 4 if has_value else None
            rows.append(Rec(value, b"k%d" % key, timestamp_delta_ms=delta))
            self.appended.append(Kept(first + delta, b"k%d" % key, value, now_ms + delta))
        producer = {"producer_id": PRODUCER_ID, "producer_epoch": 0, "base_sequence": self.sequence}
        batch = build(rows, timestamp_ms=now_ms, codec=codec, **(producer if idempotent else {}))
        if idempotent:
            self.sequence += len(pairs)
        appended = self.run(self.rig.append(self.log, batch, flush=flush))
        assert appended.base_offset == first
        if flush:
            self.flushed_end_offset = self.log.flushed_end_offset

    @rule(seconds=st.sampled_from([1, 6, 11]))
    def time_passes(self, seconds: int) -> None:
        async def pass_by() -> None:
            self.rig.clock.advance(seconds)
            await settle(5)

        self.run(pass_by())

    @rule(rolls=st.booleans(), settles=st.sampled_from([True, True, False]), dies_after=st.none() | st.integers(0, 3))
    def clean(self, rolls: bool, settles: bool, dies_after: int | None) -> None:
        async def work() -> None:
            if rolls:
                await self.log.roll()
            if settles:
                await self.log.flush()
                await self.rig.checkpoint()
            self.rig.processes.steps_until_death = dies_after
            await compactor_of(self.rig).clean_dirtiest()
            self.rig.processes.steps_until_death = None

        before = self.log.log_end_offset
        self.run(work())
        assert self.log.log_end_offset == before
        self.flushed_end_offset = self.log.flushed_end_offset
        compactor_of(self.rig)._losses.clear()

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        # Never below what may have been compacted, which was committed. A segment that is active now may have been a
        # finished one before another truncation, or before a power cut took its successor.
        first = min(self.compacted_below, self.log.log_end_offset)
        self.run(self.log.truncate_to(first + round((self.log.log_end_offset - first) * where)))
        end_offset = self.log.log_end_offset
        self.appended = [each for each in self.appended if each.offset < end_offset]
        self.flushed_end_offset = min(self.flushed_end_offset, end_offset)
        self._sequence_found_again()

    def found_again(self, *, all_of_it: bool) -> None:
        end_offset = self.log.log_end_offset
        if all_of_it and self.appended:
            assert end_offset > self.appended[-1].offset
        self.appended = [each for each in self.appended if each.offset < end_offset]
        self._sequence_found_again()

    def _sequence_found_again(self) -> None:
        state = self.log.producers.get(PRODUCER_ID)
        self.sequence = 0 if state is None else state.last_sequence + 1

    @invariant()
    def the_log_tells_what_the_dict_does(self) -> None:
        if not hasattr(self, "log"):
            return
        if len(self.log.segments):
            self.compacted_below = max(self.compacted_below, self.log.segments.base_offsets[-1])
        found = self.run(kept(self.log))
        offsets = [each.offset for each in found]
        assert offsets == sorted(set(offsets))
        by_offset = {each.offset: each for each in self.appended}
        for each in found:
            assert by_offset[each.offset] == each, "a record was changed"
        start = self.log.log_start_offset
        visible = [each for each in self.appended if each.offset >= start]
        assert table(found) == table(visible)
        latest = {each.key: each for each in visible}
        for each in latest.values():
            if each.value is not None:
                assert each.offset in offsets
        self._check_tombstones(latest, offsets)
        assert self.log.size_bytes == sum(segment.size_bytes for segment in self.log.segments)
        self._check_batches()

    def _check_tombstones(self, latest: dict[bytes | None, Kept], offsets: list[int]) -> None:
        """One that was never older than the retention is there."""
        for each in latest.values():
            if each.value is None and self.rig.clock.now_ms() - each.timestamp < 10_000:
                assert each.offset in offsets, "a tombstone went before its time"

    def _check_batches(self) -> None:
        batches = self.run(batches_of(self.log))
        ends = [batch.last_offset for batch in batches]
        assert all(batch.base_offset > end for batch, end in zip(batches[1:], ends, strict=False))
        if batches:
            assert ends[-1] < self.log.log_end_offset


TestCompactionModel = CompactionModel.TestCase
TestCompactionModel.settings = model_settings(80)
