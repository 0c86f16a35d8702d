"""Plain commits, commits of two producers, their ends, deletions, expiry, restarts and compactions, in any order,
against a model that is one map: what was written last for a partition, by whoever it counts, is what is fetched.

The compaction here does to the log of the rig what the broker's does to ``__consumer_offsets``: below the first open
transaction it drops what was aborted and all but the last record of each key, and perhaps the tombstones as well.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headpond.config.groups import GroupSettings
from headpond.coordination.home import Ended, Producer
from headpond.model import ErrorCode
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest
from unit.coordination.offsets_rig import GROUP, TOPIC, Rig

MINUTE_MS = 60_000
RETENTION_MS = 10 * MINUTE_MS
PARTITIONS = (0, 1, 2)
PRODUCERS = (Producer(7, 0), Producer(8, 3))
AGES_MS = (-1, MINUTE_MS)
"""That a commit asks for; -1: none."""

Logged = tuple[bytes, bytes | None, Producer | None] | Ended


class Written(NamedTuple):
    offset: int
    expires_ms: int
    place: int
    """In the order of writing."""


class OffsetsModel(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.rig = Rig(GroupSettings(retention_ms=RETENTION_MS))
        self.committed: dict[int, Written] = {}
        self.pending: dict[Producer, dict[int, Written]] = {each: {} for each in PRODUCERS}
        self.count = 0

    # --- what clients do

    @rule(partition=st.sampled_from(PARTITIONS), age_ms=st.sampled_from(AGES_MS))
    def commit(self, partition: int, age_ms: int) -> None:
        new = self._next(age_ms)
        codes = self.rig.commit({partition: new.offset}, retention_ms=age_ms, version=4)
        assert codes == {partition: ErrorCode.NONE}
        self.committed[partition] = new

    @rule(partition=st.sampled_from(PARTITIONS), producer=st.sampled_from(PRODUCERS))
    def commit_in_transaction(self, partition: int, producer: Producer) -> None:
        new = self._next(-1)
        codes = self.rig.commit_in_transaction(producer, {partition: new.offset})
        assert codes == {partition: ErrorCode.NONE}
        self.pending[producer][partition] = new

    @rule(producer=st.sampled_from(PRODUCERS), is_commit=st.booleans())
    def end(self, producer: Producer, is_commit: bool) -> None:
        self.rig.end(producer, commit=is_commit)
        for partition, written in self.pending[producer].items():
            before = self.committed.get(partition)
            if is_commit and (before is None or before.place < written.place):
                self.committed[partition] = written
        self.pending[producer] = {}

    @rule(partition=st.sampled_from(PARTITIONS))
    def delete(self, partition: int) -> None:
        if GROUP not in self.rig.groups:
            return
        row = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition)
        request = OffsetDeleteRequest(GROUP, [OffsetDeleteRequest.OffsetDeleteRequestTopic(TOPIC, [row])])
        self.rig.carry_out(self.rig.store.delete(request))
        for offsets in (self.committed, *self.pending.values()):
            offsets.pop(partition, None)

    # --- what happens to them

    @rule(minutes=st.sampled_from([1, 5, 10]))
    def time_passes_and_old_ones_go(self, minutes: int) -> None:
        self.rig.clock.advance(minutes * 60)
        if GROUP not in self.rig.groups:
            return
        is_all = self.rig.expire()
        now_ms = self.rig.clock.now_ms()
        self.committed = {
            partition: written
            for partition, written in self.committed.items()
            if written.expires_ms > now_ms or any(partition in held for held in self.pending.values())
        }
        assert is_all is (not self.committed and not any(self.pending.values()))

    @rule()
    def restart(self) -> None:
        self.rig.restart()

    @rule(part=st.floats(0, 1), with_tombstones=st.booleans())
    def compact(self, part: float, with_tombstones: bool) -> None:
        """Of what may be compacted, some segments: ``part``."""
        log: list[Logged] = self.rig.log
        end = round(part * _first_open(log))
        self.rig.log = [*_compacted(log[:end], log, with_tombstones=with_tombstones), *log[end:]]

    # --- what is always true

    @invariant()
    def the_last_written_is_what_is_fetched(self) -> None:
        if hasattr(self, "rig"):
            self._check(self.rig)

    @invariant()
    def a_store_made_from_the_log_tells_the_same(self) -> None:
        if hasattr(self, "rig"):
            copy = Rig(self.rig.settings)
            copy.log = self.rig.log
            copy.restart()
            self._check(copy)

    # --- inside

    def _next(self, age_ms: int) -> Written:
        self.count += 1
        kept_ms = RETENTION_MS if age_ms == -1 else age_ms
        return Written(offset=self.count, expires_ms=self.rig.clock.now_ms() + kept_ms, place=self.count)

    def _check(self, rig: Rig) -> None:
        for is_stable, rows in ((False, rig.fetch(*PARTITIONS)), (True, rig.fetch(*PARTITIONS, require_stable=True))):
            for partition in PARTITIONS:
                row = rows[partition]
                if is_stable and any(partition in held for held in self.pending.values()):
                    assert row.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
                else:
                    expected = self.committed[partition].offset if partition in self.committed else -1
                    assert (row.error_code, row.committed_offset) == (0, expected)
        assert rig.store.count == len(self.committed)


def _first_open(log: list[Logged]) -> int:
    """Where the first transaction begins that has not ended."""
    ended_after = len(log)
    open_since: dict[Producer, int] = {}
    for at, entry in enumerate(log):
        if isinstance(entry, Ended):
            open_since.pop(entry.producer, None)
        elif entry[2] is not None:
            open_since.setdefault(entry[2], at)
    return min(open_since.values(), default=ended_after)


def _compacted(part: list[Logged], log: list[Logged], *, with_tombstones: bool) -> list[Logged]:
    last: dict[bytes, int] = {}
    for at, entry in enumerate(part):
        if not isinstance(entry, Ended) and not _is_aborted(entry, log[at:]):
            last[entry[0]] = at
    return [
        entry
        for at, entry in enumerate(part)
        if isinstance(entry, Ended) or (last.get(entry[0]) == at and not (with_tombstones and entry[1] is None))
    ]


def _is_aborted(entry: tuple[bytes, bytes | None, Producer | None], rest: list[Logged]) -> bool:
    if entry[2] is None:
        return False
    end = next(each for each in rest if isinstance(each, Ended) and each.producer == entry[2])
    return not end.is_commit


OffsetsModel.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestOffsets = OffsetsModel.TestCase
