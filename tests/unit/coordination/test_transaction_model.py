"""Producers, zombies, retries, time-outs, restarts and partitions that refuse markers, in any order, against a model
that knows only what was answered:

* an id and epoch that were given out are never followed by older ones, nor given to somebody else;
* whoever was replaced by a newer producer adds nothing and commits nothing;
* what was answered as committed is never aborted, and the other way round;
* after everything heals, every transaction that was decided is ended, with one and the same marker everywhere.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headpond.coordination.home import Producer
from headpond.coordination.transactions.state import PREPARED
from headpond.model import ErrorCode, TopicPartition
from unit.coordination.transaction_world import ID, P0, P1, P2, World

PARTITIONS = (P0, P1, P2)
RETRIABLE = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Incarnation:
    """One process of the application that uses the transactional id."""

    def __init__(self, version: int) -> None:
        self.version = version  # the protocol that it speaks
        self.has: Producer | None = None
        self.replaced = False
        self.last_end: tuple[Producer, bool] | None = None  # sent; the answer may have got lost


class Transactions(RuleBasedStateMachine):
    @initialize(version=st.sampled_from([1, 2]))
    def begin(self, version: int) -> None:
        self.world = World(transaction_version=version)
        self.world.holds_markers = True
        self.incarnations: list[Incarnation] = []
        self.given: list[Producer] = []  # by InitProducerId, in order
        self.outcomes: dict[tuple[int, int], bool] = {}  # by the marker's id and epoch: what was answered
        self.marked: dict[tuple[int, int], bool] = {}
        self.decided: bool | None = None  # the answer to the end of the last transaction, until the next one begins
        self.unmarked: set[TopicPartition] = set()  # in the transaction, and without a marker yet
        self.seen: tuple[int, int] = (-1, -1)

    # --- producers

    @rule(version=st.sampled_from([1, 2]), is_new=st.booleans(), which=st.integers(0, 9))
    def start(self, version: int, is_new: bool, which: int) -> None:
        """A new process, or one that has none yet tries again."""
        waiting = [each for each in self.incarnations if each.has is None and not each.replaced]
        if is_new or not waiting:
            who = Incarnation(min(version, self.world.transaction_version))
            self.incarnations.append(who)
        else:
            who = waiting[which % len(waiting)]
        answer = self.world.init()
        if isinstance(answer, Producer):
            self._given(who, answer)
        else:
            assert answer in RETRIABLE

    @precondition(lambda self: self._working())
    @rule(which=st.integers(0, 9), hears=st.booleans())
    def recover(self, which: int, hears: bool) -> None:
        """KIP-360: the process goes on after an error, and may not hear the answer."""
        who = self._some(which)
        answer = self.world.init(has=who.has)
        if isinstance(answer, Producer):
            assert not who.replaced, "a zombie came back"
            if hears:
                self._given(who, answer)
            else:
                self._note(answer)
        else:
            assert answer in (*RETRIABLE, ErrorCode.PRODUCER_FENCED)

    @precondition(lambda self: self._working())
    @rule(which=st.integers(0, 9), tp=st.sampled_from(PARTITIONS))
    def add(self, which: int, tp: TopicPartition) -> None:
        who = self._some(which)
        assert who.has is not None
        was_open = self.world.state() == "Ongoing"
        answer = self.world.add(who.has, tp, client_version=who.version)
        if answer is ErrorCode.NONE:
            assert was_open or not self.unmarked, "the last transaction has not ended everywhere"
            self.unmarked.add(tp)
            assert not who.replaced, "a zombie wrote"
            self.decided = None
            assert self.world.verify(who.has, tp) is ErrorCode.NONE
        else:
            assert answer in (*RETRIABLE, ErrorCode.PRODUCER_FENCED)

    @precondition(lambda self: self._working())
    @rule(which=st.integers(0, 9), commit=st.booleans(), hears=st.booleans())
    def end(self, which: int, commit: bool, hears: bool) -> None:
        who = self._some(which)
        assert who.has is not None
        self._end(who, who.has, commit, hears)

    @precondition(lambda self: self._with_end())
    @rule(which=st.integers(0, 9), hears=st.booleans())
    def end_again(self, which: int, hears: bool) -> None:
        """A retry of a request that the network delayed or whose answer it lost."""
        who = self._with_end()[which % len(self._with_end())]
        assert who.last_end is not None
        self._end(who, *who.last_end, hears)

    # --- the world

    @rule(seconds=st.sampled_from([1, 30, 70]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @precondition(lambda self: self.world.sent)
    @rule(
        which=st.integers(0, 9),
        codes=st.lists(
            st.sampled_from([ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, None]), min_size=3, max_size=3
        ),
    )
    def partitions_answer(self, which: int, codes: list[ErrorCode | None]) -> None:
        sent = self.world.sent.pop(which % len(self.world.sent))
        sent.answer({tp: code for tp, code in zip(sent.partitions, codes, strict=False) if code is not None})

    @rule(fails=st.booleans())
    def log_fails(self, fails: bool) -> None:
        self.world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE if fails else None

    @rule()
    def heal(self) -> None:
        """Everything works for a while: whatever was decided must end."""
        self.world.append_error = None
        self.world.release_markers()
        self.world.clock.advance(8)
        self.world.release_markers()
        assert not any(each.state in PREPARED for each in self.world.machine.unfinished())
        self.world.holds_markers = True

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.heal()

    # --- what is always true

    @invariant()
    def what_is_told_is_what_happens(self) -> None:
        if not hasattr(self, "world"):
            return
        for tp, marker in self.world.markers:
            self.unmarked.discard(tp)
            key = (marker.producer_id, marker.producer_epoch)
            assert self.decided in (None, marker.is_commit), "not what was answered"
            if marker.transaction_version >= 2:  # each transaction has an epoch of its own
                assert self.marked.setdefault(key, marker.is_commit) is marker.is_commit, "two outcomes"
                assert self.outcomes.get(key, marker.is_commit) is marker.is_commit, "not what was answered"
        self.world.markers.clear()

    @invariant()
    def epochs_never_go_back(self) -> None:
        if not hasattr(self, "world"):
            return
        answer = self.world.machine.describe(ID)
        if answer.error_code == 0:
            now = (answer.producer_id, answer.producer_epoch)
            assert now >= self.seen, "ids grow in this world, so this compares epochs as well"
            self.seen = now

    @invariant()
    def a_copy_made_from_the_log_tells_the_same(self) -> None:
        if not hasattr(self, "world"):
            return
        copy = World(transaction_version=self.world.transaction_version)
        copy.holds_markers = True
        copy.log = self.world.log
        copy.restart()
        assert copy.machine.describe(ID) == self.world.machine.describe(ID)

    # --- inside

    def _working(self) -> list[Incarnation]:
        return [each for each in self.incarnations if each.has is not None]

    def _with_end(self) -> list[Incarnation]:
        return [each for each in self._working() if each.last_end]

    def _some(self, which: int) -> Incarnation:
        working = self._working()
        return working[which % len(working)]

    def _note(self, answer: Producer) -> None:
        assert not self.given or answer >= self.given[-1], "an epoch went back"
        self.given.append(answer)

    def _given(self, who: Incarnation, answer: Producer) -> None:
        self._note(answer)
        self.decided = None
        who.has, who.last_end = answer, None
        for other in self.incarnations:
            if other is not who:
                other.replaced = True

    def _end(self, who: Incarnation, has: Producer, commit: bool, hears: bool) -> None:
        was_open = self.world.state() == "Ongoing"
        answer = self.world.end(has, commit=commit, client_version=who.version if who.version >= 2 else 0)
        if isinstance(answer, Producer):
            if was_open:
                self.decided = commit
            if commit:
                assert not who.replaced or who.last_end == (has, commit), "a zombie committed"
            if who.version >= 2:
                key = (has.producer_id, has.epoch + 1)
                assert self.outcomes.setdefault(key, commit) is commit, "answered both ways"
                assert answer > has, "each transaction has an epoch of its own"
                if hears and not who.replaced:
                    who.has = answer
            who.last_end = (has, commit)
        else:
            assert answer in (*RETRIABLE, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)


Transactions.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestTransactions = Transactions.TestCase
