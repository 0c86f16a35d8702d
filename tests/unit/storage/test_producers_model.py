"""Producer state against a plain model: the whole list of what each producer ever stored."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.records.header import BatchHeader
from headpond.storage.producers.producers import ProducerStates

TP = TopicPartition("t", 0)
PIDS = (1, 2, 3)
WRAP = 2**31


class Stored:
    """One batch, as the model remembers it."""

    def __init__(self, epoch: int, sequence: int, count: int, offset: int) -> None:
        self.epoch, self.sequence, self.count, self.offset = epoch, sequence, count, offset


class ProducersAgainstAModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.states = ProducerStates(TP)
        self.log: list[BatchHeader] = []  # with their offsets
        self.stored: dict[int, list[Stored]] = {}
        self.end = 0
        self.snapshot: tuple[bytes, int] | None = None

    def expected(self, pid: int, epoch: int, sequence: int, count: int) -> int | ErrorCode | None:
        """A duplicate's offset, an error, or None to append."""
        history = self.stored.get(pid)
        if not history:
            return None
        last = history[-1]
        if epoch < last.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch > last.epoch:
            return None if sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        for old in [stored for stored in history if stored.epoch == epoch][-5:]:
            if (old.sequence, old.count) == (sequence, count):
                return old.offset
        if sequence == (last.sequence + last.count) % WRAP:
            return None
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def produce(self, pid: int, epoch: int, sequence: int, count: int) -> None:
        header = BatchHeader(0, 100, -1, 2, 0, 0, count - 1, 0, 0, pid, epoch, sequence, count)
        expected = self.expected(pid, epoch, sequence, count)
        try:
            duplicate = self.states.check(header)
        except BrokerError as error:
            assert error.code == expected
            return
        if duplicate is not None:
            assert duplicate.base_offset == expected
            return
        assert expected is None
        self.states.update(header, self.end, now_ms=0)
        self.stored.setdefault(pid, []).append(Stored(epoch, sequence, count, self.end))
        self.log.append(header._replace(base_offset=self.end))
        self.end += count

    @rule(pid=st.sampled_from(PIDS), count=st.integers(1, 3))
    def the_next_batch(self, pid: int, count: int) -> None:
        history = self.stored.get(pid)
        if history:
            last = history[-1]
            self.produce(pid, last.epoch, (last.sequence + last.count) % WRAP, count)
        else:
            self.produce(pid, 0, WRAP - 4 if pid == 1 else 0, count)

    @rule(pid=st.sampled_from(PIDS), back=st.integers(1, 7), extra=st.sampled_from([0, 0, 1]))
    def a_retry(self, pid: int, back: int, extra: int) -> None:
        history = self.stored.get(pid, [])
        if len(history) >= back:
            old = history[-back]
            self.produce(pid, old.epoch, old.sequence, old.count + extra)

    @rule(pid=st.sampled_from(PIDS), epoch=st.integers(0, 4), sequence=st.sampled_from([0, 0, 1, 2, 5, WRAP - 1]))
    def any_batch(self, pid: int, epoch: int, sequence: int) -> None:
        self.produce(pid, epoch, sequence, 1)

    @rule()
    def take_a_snapshot(self) -> None:
        self.snapshot = (self.states.snapshot(), self.end)

    @precondition(lambda self: self.snapshot is not None)
    @rule()
    def crash_and_recover(self) -> None:
        """The newest snapshot, then the log behind it: of what lies before, only each producer's newest batch stays."""
        assert self.snapshot is not None
        data, offset = self.snapshot
        self.states = ProducerStates(TP)
        self.states.load(data, offset, now_ms=0)
        for header in self.log:
            if header.base_offset >= offset:
                self.states.replay(b"", header, now_ms=0)
        for pid, history in self.stored.items():
            before = [stored for stored in history if stored.offset < offset]
            self.stored[pid] = before[-1:] + [stored for stored in history if stored.offset >= offset]

    @invariant()
    def the_end_is_the_logs_end(self) -> None:
        assert self.states.end_offset == self.end

    @invariant()
    def at_most_five_batches_are_kept(self) -> None:
        assert all(len(known.batches) <= 5 for known in self.states.states())


TestProducersAgainstAModel = ProducersAgainstAModel.TestCase
TestProducersAgainstAModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
