"""The library against a list: any calls in any order, with restarts, kills and power cuts in between and in the middle
of a call. What was told to be in the log is there, at its offset, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headpond.log import NewRecord, OffsetOutOfRange, Record
from unit.log.log_rig import NOW_MS, LogRig
from unit.storage.model_rig import model_settings

KEYS = st.sampled_from([b"anna", b"bob", b"carla"])
VALUES = st.none() | st.binary(max_size=60)
TIMES = st.integers(-40, 40)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2)
RECORDS = st.builds(
    lambda value, key, headers, later_ms: NewRecord(value, key, headers, NOW_MS + later_ms),
    VALUES,
    KEYS,
    HEADERS,
    TIMES,
)


class LogModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig: LogRig
        self.records: list[Record] = []  # those that are to be there
        self.start_offset = 0
        self.end_offset = 0

    @initialize(interval_bytes=st.sampled_from([0, 100, 5_000]))
    def open(self, interval_bytes: int) -> None:
        self.rig = LogRig(index_interval_bytes=interval_bytes)
        self.rig.open()

    def teardown(self) -> None:
        if hasattr(self, "rig"):
            self.rig.die()

    # --- calls

    @rule(given=RECORDS)
    def append(self, given: NewRecord) -> None:
        offset = self.rig.log.append(given.value, key=given.key, headers=given.headers, timestamp=given.timestamp)
        self._note([given], [offset])

    @rule(given=st.lists(RECORDS, max_size=20))
    def append_many(self, given: list[NewRecord]) -> None:
        self._note(given, self.rig.log.append_many(given))

    def _note(self, given: list[NewRecord], offsets: list[int]) -> None:
        assert offsets == list(range(self.end_offset, self.end_offset + len(given)))
        self.records += [self._record(*pair) for pair in zip(given, offsets, strict=True)]
        self.end_offset += len(given)

    def _record(self, given: NewRecord, offset: int) -> Record:
        assert given.timestamp is not None
        headers: Any = tuple(given.headers)
        return Record(offset, given.timestamp, given.key, given.value, headers)  # type: ignore[arg-type]

    @rule(where=st.floats(0, 1))
    def delete_before(self, where: float) -> None:
        offset = self.start_offset + round((self.end_offset - self.start_offset) * where)
        assert self.rig.log.delete_before(offset) == offset
        self._deleted_before(offset)

    def _deleted_before(self, offset: int) -> None:
        self.start_offset = offset
        self.records = [record for record in self.records if record.offset >= offset]

    @rule()
    def compact(self) -> None:
        before = len(self.records)
        done = self.rig.log.compact()
        self.records = self._compacted()
        assert done.records_removed >= before - len(self.records)  # of segments that begin before the log, more

    def _compacted(self) -> list[Record]:
        latest = {record.key: record.offset for record in self.records}
        return [record for record in self.records if latest[record.key] == record.offset]

    # --- looks

    @rule(where=st.floats(0, 1))
    def read_from_an_offset(self, where: float) -> None:
        offset = self.start_offset + round((self.end_offset - self.start_offset) * where)
        expected = [record for record in self.records if record.offset >= offset]
        assert list(self.rig.log.read(offset)) == expected
        batches = list(self.rig.log.read_batches(offset))
        assert [record for batch in batches for record in batch.records(offset)] == expected

    @rule(later_ms=st.integers(-41, 41))
    def read_from_a_time(self, later_ms: int) -> None:
        timestamp = NOW_MS + later_ms
        offset = next((one.offset for one in self.records if one.timestamp >= timestamp), self.end_offset)
        assert self.rig.log.offset_at(timestamp) == offset
        found = list(self.rig.log.read(from_timestamp=timestamp))
        assert found == [record for record in self.records if record.offset >= offset]

    @rule(beyond=st.integers(1, 5))
    def read_outside(self, beyond: int) -> None:
        for offset in (self.start_offset - beyond, self.end_offset + beyond):
            with pytest.raises(OffsetOutOfRange) as caught:
                self.rig.log.read(offset)
            assert (caught.value.start_offset, caught.value.end_offset) == (self.start_offset, self.end_offset)

    # --- ends

    @rule()
    def restart(self) -> None:
        self.rig.log.close()
        self.rig.open()

    @rule(seed=st.none() | st.integers(0, 1 << 30))
    def die(self, seed: int | None) -> None:
        """By a kill, or (with a seed) by a power cut: what was told to be there was durable."""
        self.rig.die(_kill if seed is None else lambda disk: disk.power_cut(random.Random(seed)))
        self.rig.open()

    @rule(given=st.lists(RECORDS, min_size=1, max_size=20), after=st.integers(0, 60), seed=st.none() | st.integers(0))
    def die_in_an_append(self, given: list[NewRecord], after: int, seed: int | None) -> None:
        self._die_within(lambda: self.rig.log.append_many(given), after, seed)
        there = list(self.rig.log.read())
        came = [self._record(one, self.end_offset + number) for number, one in enumerate(given)]
        count = self.rig.log.end_offset - self.end_offset
        assert there == self.records + came[:count]
        self.records, self.end_offset = there, self.end_offset + count

    @rule(where=st.floats(0, 1), after=st.integers(0, 60), seed=st.none() | st.integers(0))
    def die_in_a_deletion(self, where: float, after: int, seed: int | None) -> None:
        offset = self.start_offset + round((self.end_offset - self.start_offset) * where)
        self._die_within(lambda: self.rig.log.delete_before(offset), after, seed)
        assert self.start_offset <= self.rig.log.start_offset <= offset
        self._deleted_before(self.rig.log.start_offset)

    @precondition(lambda self: len(self.records) > 3)
    @rule(after=st.integers(0, 200), seed=st.none() | st.integers(0))
    def die_in_a_compaction(self, after: int, seed: int | None) -> None:
        self._die_within(self.rig.log.compact, after, seed)
        there = list(self.rig.log.read())
        assert set(self._compacted()) <= set(there) <= set(self.records), "each record's latest is there"
        self.records = there

    def _die_within(self, call: Callable[[], object], after: int, seed: int | None) -> None:
        """After so many operations of the disk, from the call's first on."""
        disk = self.rig.disk
        start = len(disk.trace)
        call()
        operations = start + after % (len(disk.trace) - start + 1)

        def die(_: object) -> None:
            disk.kill_back_at(operations)
            if seed is not None:
                disk.power_cut(random.Random(seed))

        shown_end_offset = self.rig.shown_by(operations)
        self.rig.die(die)
        assert self.rig.open().end_offset >= shown_end_offset, "what was told to be there, or could be read"

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "rig"):
            return
        log = self.rig.log
        assert (log.start_offset, log.end_offset) == (self.start_offset, self.end_offset)
        assert list(log.read()) == self.records


def _kill(disk: Any) -> None:
    disk.kill()


TestLogModel = LogModel.TestCase
TestLogModel.settings = model_settings(120)
