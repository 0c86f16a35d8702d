"""What time does to transactions: too long open, too long at rest, markers that do not get through, restarts."""

from __future__ import annotations

import pytest

from headpond.config.transactions import TransactionSettings
from headpond.coordination.home import Producer
from headpond.coordination.slices import Work, finish_now
from headpond.coordination.transactions import upkeep
from headpond.coordination.transactions.upkeep import ABORTS_AT_ONCE_MAX
from headpond.model import ErrorCode
from unit.coordination.transaction_world import ID, P0, P1, World

HOUR_S = 3_600
WEEK_S = 7 * 24 * HOUR_S


class TestTimeOuts:
    @pytest.mark.parametrize("transaction_version", [1, 2])
    def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced(
        self, transaction_version: int
    ) -> None:
        world = World(transaction_version=transaction_version)
        producer = world.started(timeout_ms=15_000)
        world.add(producer, client_version=transaction_version)
        world.clock.advance(15)
        assert world.state() == "Ongoing"
        world.clock.advance(10)
        assert world.state() == "CompleteAbort"
        assert [(tp, marker.is_commit, marker.producer_epoch) for tp, marker in world.markers] == [(P0, False, 1)]
        assert world.add(producer) is ErrorCode.PRODUCER_FENCED
        assert world.verify(producer) is ErrorCode.PRODUCER_FENCED
        assert world.end(producer, commit=True, client_version=0) is ErrorCode.PRODUCER_FENCED

    def test_a_version_2_producer_learns_from_its_late_end_what_became_of_it(self) -> None:
        world = World()
        producer = world.started(timeout_ms=1)
        world.add(producer)
        world.clock.advance(20)
        assert world.end(producer, commit=True) is ErrorCode.INVALID_TXN_STATE
        assert world.end(producer, commit=False) == Producer(producer.producer_id, 1)

    def test_what_ends_in_time_is_left_alone(self) -> None:
        world = World()
        producer = world.started(timeout_ms=15_000)
        world.add(producer)
        world.clock.advance(14)
        assert isinstance(world.end(producer, commit=True), Producer)
        world.clock.advance(100)
        assert world.state() == "CompleteCommit"

    def test_the_time_counts_on_over_a_restart(self) -> None:
        world = World()
        producer = world.started(timeout_ms=15_000)
        world.add(producer)
        world.clock.advance(9)
        world.restart()
        world.clock.advance(10)
        assert world.state() == "CompleteAbort"

    @pytest.mark.parametrize("jump_s", [-5 * HOUR_S, 5 * HOUR_S])
    @pytest.mark.parametrize("after_s", [0, 12])
    def test_a_wall_clock_that_jumps_neither_ends_a_transaction_early_nor_keeps_it_open(
        self, jump_s: int, after_s: int
    ) -> None:
        world = World()
        producer = world.started(timeout_ms=25_000)
        world.add(producer)
        world.clock.advance(after_s)
        world.clock.wall_offset_ms += jump_s * 1_000
        world.clock.advance(24 - after_s)
        assert world.state() == "Ongoing"
        world.clock.advance(10)
        assert world.state() == "CompleteAbort"

    def test_the_next_transaction_has_all_of_its_time_whatever_the_wall_clock_says(self) -> None:
        world = World()
        producer = world.started(timeout_ms=25_000)
        for _ in range(3):
            world.add(producer)
            world.clock.advance(20)
            ended = world.end(producer, commit=True)
            assert isinstance(ended, Producer)
            producer = ended
            world.clock.wall_offset_ms -= 20_000  # it begins in the same millisecond as the one before

    def test_many_time_outs_are_worked_off_in_parts(self) -> None:
        world = World()
        count = ABORTS_AT_ONCE_MAX + 20
        for number in range(count):
            world.add(world.started(f"id-{number}", timeout_ms=1), name=f"id-{number}")
        world.clock.advance(10)
        assert len(world.markers) == ABORTS_AT_ONCE_MAX
        world.clock.advance(0.2)
        assert len(world.markers) == count

    def test_one_that_can_not_be_written_is_tried_again(self) -> None:
        world = World()
        world.add(world.started(timeout_ms=1))
        world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.clock.advance(25)
        assert world.state() == "Ongoing"
        world.append_error = None
        world.clock.advance(10)
        assert world.state() == "CompleteAbort"

    def test_a_closed_coordinator_does_nothing_more(self) -> None:
        world = World()
        world.add(world.started(timeout_ms=1))
        world.machine.close()
        size = len(world.log)
        world.clock.advance(2 * WEEK_S)
        assert len(world.log) == size
        assert world.clock.next_timer_s() is None


class TestExpiry:
    def test_an_id_at_rest_is_forgotten_after_a_week(self) -> None:
        world = World()
        first = world.started()
        world.clock.advance(WEEK_S - 2 * HOUR_S)
        assert world.state() == "Empty"
        world.clock.advance(3 * HOUR_S)
        assert world.state() == "TRANSACTIONAL_ID_NOT_FOUND"
        assert world.log[-1][1] is None
        assert world.add(first) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.end(first, commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        new = world.started()
        assert (new.producer_id != first.producer_id, new.epoch) == (True, 0)

    def test_what_is_used_or_ending_is_kept(self) -> None:
        world = World()
        world.started("used")
        world.add(world.started("ending"), name="ending")
        world.holds_markers = True
        world.init("ending")
        world.clock.advance(WEEK_S - HOUR_S)
        world.started("used")
        world.clock.advance(3 * HOUR_S)
        assert (world.state("used"), world.state("ending")) == ("Empty", "PrepareAbort")

    def test_forgetting_survives_a_restart(self) -> None:
        world = World()
        world.started()
        world.clock.advance(WEEK_S + HOUR_S)
        world.restart()
        assert world.state() == "TRANSACTIONAL_ID_NOT_FOUND"

    def test_while_its_tombstone_is_not_committed_the_id_is_busy(self) -> None:
        world = World(settings=TransactionSettings(id_expiration_ms=1))
        producer = world.started()
        world.holds_commits = True
        world.clock.advance(HOUR_S)
        assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS
        assert world.add(producer) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert world.end(producer, commit=False) is ErrorCode.CONCURRENT_TRANSACTIONS
        world.commit()
        assert world.started().epoch == 0

    def test_many_long_ids_are_forgotten_in_several_batches(self) -> None:
        world = World(settings=TransactionSettings(id_expiration_ms=1))
        names = [f"{number}-" + "x" * 30_000 for number in range(10)]
        for name in names:
            world.started(name)
        size = len(world.log)
        world.clock.advance(HOUR_S)
        assert 0 < len(world.log) - size < len(names)
        world.clock.advance(1)
        assert [world.state(name) for name in names] == ["TRANSACTIONAL_ID_NOT_FOUND"] * len(names)

    def test_ids_are_looked_at_in_slices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(upkeep, "SLICE_IDS", 2)
        world = World(settings=TransactionSettings(id_expiration_ms=1))
        for number in range(7):
            world.started(f"{number}")
        works: dict[str, Work[list[str] | None]] = {}
        world.machine.upkeep._in_slices = lambda what, work, done: works.setdefault(what, work)  # type: ignore
        world.clock.advance(HOUR_S)
        assert sum(1 for _ in works["look for expired transactional ids"]) == 3

    def test_open_transactions_are_looked_at_in_slices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(upkeep, "SLICE_IDS", 2)
        world = World()
        for number in range(7):
            world.add(world.started(f"{number}", timeout_ms=60_000), name=f"{number}")
        works: dict[str, Work[list[str] | None]] = {}
        world.machine.upkeep._in_slices = lambda what, work, done: works.setdefault(what, work)  # type: ignore
        world.clock.advance(10)
        assert sum(1 for _ in works["look for late transactions"]) == 6, (
            "three for them, three for what is known of them"
        )

    def test_an_id_that_is_used_again_before_its_tombstone_is_written_is_kept(self) -> None:
        world = World(settings=TransactionSettings(id_expiration_ms=60_000))
        for name in ("used", "left"):
            world.started(name)
        world.clock.advance(60)
        expired = finish_now(world.machine.upkeep._expired())
        world.started("used")
        assert expired == ["used", "left"]
        world.machine.upkeep._forget_soon(expired)
        world.clock.advance(0.1)
        assert (world.state("used"), world.state("left")) == ("Empty", "TRANSACTIONAL_ID_NOT_FOUND")


class TestMarkers:
    def decided(self, *, commit: bool = True) -> tuple[World, Producer]:
        world = World()
        producer = world.started()
        world.add(producer, P0, P1)
        world.holds_markers = True
        world.end(producer, commit=commit)
        return world, producer

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ],
    )
    def test_a_partition_that_refuses_is_asked_again_and_only_that_one(self, code: ErrorCode) -> None:
        world, _ = self.decided()
        first = world.sent.pop()
        assert first.partitions == (P0, P1)
        first.answer({P0: ErrorCode.NONE, P1: code})
        world.clock.advance(1)
        assert world.state() == "PrepareCommit"
        (again,) = world.sent
        assert (again.partitions, again.marker) == ((P1,), first.marker)
        again.succeed()
        assert world.state() == "CompleteCommit"
        assert [tp for tp, _ in world.markers] == [P0, P1]

    def test_no_answer_for_a_partition_is_no_success(self) -> None:
        world, _ = self.decided()
        world.sent.pop().answer({P0: ErrorCode.NONE})
        world.clock.advance(1)
        assert world.sent[0].partitions == (P1,)

    def test_a_later_epoch_on_a_partition_means_that_nothing_is_open_there(self) -> None:
        world, _ = self.decided()
        world.sent.pop().answer({P0: ErrorCode.NONE, P1: ErrorCode.INVALID_PRODUCER_EPOCH})
        assert world.state() == "CompleteCommit"

    def test_a_deleted_topic_does_not_hold_the_end_up(self) -> None:
        world, _ = self.decided()
        world.sent.pop().answer({P0: ErrorCode.NONE, P1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
        world.deleted.add(P1)
        world.clock.advance(1)
        assert world.state() == "CompleteCommit"

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_restart_sends_the_markers_of_what_was_decided_again(self, commit: bool) -> None:
        world, producer = self.decided(commit=commit)
        world.sent.pop().answer({P0: ErrorCode.NONE, P1: ErrorCode.NOT_LEADER_OR_FOLLOWER})
        world.restart()
        (again,) = world.sent
        assert again.partitions == (P0, P1)
        assert again.marker == (producer.producer_id, 1, commit, world.leader_epoch, 2)
        world.release_markers()
        assert world.state() == ("CompleteCommit" if commit else "CompleteAbort")

    def test_after_the_end_is_written_a_restart_sends_nothing(self) -> None:
        world, _ = self.decided()
        world.release_markers()
        world.holds_markers = True
        world.restart()
        assert world.sent == []

    def test_the_end_is_written_again_when_that_failed(self) -> None:
        world, _ = self.decided()
        world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.sent.pop().succeed()
        assert world.state() == "PrepareCommit"
        world.append_error = None
        world.clock.advance(2)
        assert world.state() == "CompleteCommit"
        assert world.sent == [], "the markers are there already"

    def test_answers_that_come_after_the_close_are_nobodys(self) -> None:
        world, _ = self.decided()
        late = world.sent.pop()
        world.machine.close()
        size = len(world.log)
        late.succeed()
        assert len(world.log) == size


class TestTelling:
    def test_describe(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer, P1)
        answer = world.machine.describe(ID)
        assert (answer.error_code, answer.transactional_id, answer.transaction_state) == (0, ID, "Ongoing")
        assert (answer.producer_id, answer.producer_epoch, answer.transaction_timeout_ms) == (*producer, 60_000)
        assert world.machine.describe("").error_code == ErrorCode.INVALID_REQUEST
        assert world.machine.describe("unheard").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    def test_unfinished_transactions_are_those_that_are_open_or_ending(self) -> None:
        world = World()
        world.started("rests")
        world.add(world.started("open"), name="open")
        ending = world.started("ending")
        world.add(ending, name="ending")
        world.holds_markers = True
        world.end(ending, commit=True, name="ending")
        assert [each.transactional_id for each in world.machine.unfinished()] == ["open", "ending"]
