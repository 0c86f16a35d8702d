"""T1-T7 accuse transactions that are torn, seen too early, or end as they should not, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation.checkers import (
    t1_atomic,
    t2_aborted,
    t3_committed,
    t4_uncommitted,
    t5_markers,
    t6_offsets,
    t7_nothing_open,
)
from simulation.checkers.proof.handmade import PLACE, accuses, acquits, batch, final, history, marker, poll, seen, send
from simulation.history import Batch, CommitOffset, EndTransaction, FetchOffset, GroupState, History, Place, Poll, Send

OTHER = Place("t", "id-1", 1)
PRODUCER = (7, 0)


def sent(value: bytes, offset: int, partition: int = 0, transaction: str = "x1", **others: Any) -> Send:
    return send(value, offset, partition=partition, transaction=transaction, **others)


def ended(s: float, outcome: Any = "ok", *, is_commit: bool = True, transaction: str = "x1") -> EndTransaction:
    return EndTransaction(
        process="p1",
        invoked_s=s,
        ended_s=s + 0.1,
        outcome=outcome,
        transaction=transaction,
        transactional_id="x",
        is_commit=is_commit,
    )


def data(offset: int, value: bytes, epoch: int = 0, *, transactional: bool = True) -> Batch:
    return batch(seen(offset, value), producer=(7, epoch), sequence=offset, transactional=transactional)


def two_partitions(
    *ends: EndTransaction, hidden: tuple[list[int], list[int]] = ([], []), kind: Any = "commit"
) -> History:
    end = marker(1, kind, PRODUCER)
    logs = [
        final(data(0, b"a"), end, hidden=hidden[0]),
        final(data(0, b"b"), end, hidden=hidden[1], place=OTHER),
    ]
    return history(sent(b"a", 0), sent(b"b", 0, 1), *ends, logs=logs)


def committed_poll(s: float = 9.0) -> Poll:
    return poll(0, 1, seen(0, b"a"), s=s, isolation="read_committed")


def also(one: History, *operations: Any) -> History:
    return replace(one, operations=[*one.operations, *operations])


# --- T1


def test_t1_acquits_transactions_that_are_visible_as_a_whole_or_not_at_all() -> None:
    for ends in ((), (ended(2.0),), (ended(2.0, "unknown"),)):
        acquits(t1_atomic.check, two_partitions(*ends))
        acquits(t1_atomic.check, two_partitions(*ends, hidden=([0], [0])))


def test_t1_accuses_a_transaction_that_is_visible_in_part() -> None:
    torn = two_partitions(ended(2.0, "unknown"), hidden=([], [0]))
    accuses(
        t1_atomic.check, torn, r"of transaction x1 read_committed shows 'a' at t-0 offset 0 .*not 'b' at t-1 offset 0"
    )
    unknown = replace(torn, operations=[replace(each, outcome="unknown") for each in torn.operations])
    accuses(t1_atomic.check, unknown, "of transaction x1")


def test_t1_does_not_count_what_compaction_or_log_start_removed() -> None:
    torn = two_partitions(ended(2.0), hidden=([], [0]))
    torn.final_logs[OTHER].configs["cleanup.policy"] = "compact"
    acquits(t1_atomic.check, torn)
    shorter = two_partitions(ended(2.0), hidden=([], [0]))
    shorter.final_logs[OTHER].log_start_offset = 1
    acquits(t1_atomic.check, shorter)


# --- T2


def test_t2_acquits_readers_of_committed_and_unknown_transactions() -> None:
    for end in (ended(2.0), ended(2.0, "unknown")):
        acquits(t2_aborted.check, also(two_partitions(end), committed_poll()))
    uncommitted = poll(0, 1, seen(0, b"a"))
    hidden = two_partitions(ended(2.0, is_commit=False), hidden=([0], [0]), kind="abort")
    acquits(t2_aborted.check, also(hidden, uncommitted))


def test_t2_accuses_a_reader_that_got_aborted_records() -> None:
    for ends in ([ended(2.0, is_commit=False)], [ended(2.0, "failed")], []):
        polled = also(two_partitions(*ends, hidden=([0], [0])), committed_poll())
        accuses(t2_aborted.check, polled, r"'a' of the aborted transaction x1 .* at t-0 offset 0 to c1 at 9.100 s")
    in_the_end = two_partitions(hidden=([0], []))
    accuses(t2_aborted.check, in_the_end, "'b' of the aborted transaction x1 .* to the final read at the end")


# --- T3


def test_t3_acquits_a_committed_transaction_all_of_which_is_visible() -> None:
    acquits(t3_committed.check, two_partitions(ended(2.0)))
    acquits(t3_committed.check, two_partitions(ended(2.0, "unknown"), hidden=([0], [0])))
    acquits(t3_committed.check, two_partitions(ended(2.0, is_commit=False), hidden=([0], [0])))


def test_t3_accuses_a_committed_transaction_that_is_not_visible() -> None:
    lost = two_partitions(ended(2.0), hidden=([], [0]))
    accuses(t3_committed.check, lost, "'b' of transaction x1 .* committed at 2.100 s, is not visible at t-1 offset 0")
    late = two_partitions(ended(2.0, "unknown"), ended(3.0), hidden=([], [0]))
    accuses(t3_committed.check, late, "committed at 3.100 s")
    lost.final_logs[OTHER].log_start_offset = 1
    acquits(t3_committed.check, lost)


# --- T4


def test_t4_acquits_readers_after_or_during_the_commit() -> None:
    acquits(t4_uncommitted.check, also(two_partitions(ended(2.0)), committed_poll(2.0), committed_poll(9.0)))
    acquits(t4_uncommitted.check, also(two_partitions(ended(2.0)), poll(0, 1, seen(0, b"a"), s=1.5)))
    acquits(t4_uncommitted.check, also(two_partitions(ended(2.0, "unknown"), ended(5.0)), committed_poll(3.0)))


def test_t4_accuses_a_reader_that_was_given_a_record_before_the_commit() -> None:
    early = also(two_partitions(ended(2.0)), committed_poll(1.5))
    accuses(
        t4_uncommitted.check, early, "c1 was given 'a' of transaction x1 .* at 1.600 s, before .* asked for at 2.000"
    )


# --- T5


def walked(*batches: Batch, operations: tuple[Any, ...] = ()) -> History:
    in_second = sent(b"b", 1, transaction="x2"), ended(4.0, transaction="x2")
    return history(sent(b"a", 0), ended(2.0), *in_second, *operations, logs=[final(*batches)])


def test_t5_acquits_transactions_with_a_marker_each_and_markers_of_nothing() -> None:
    commit, again = marker(1, "commit", PRODUCER), marker(2, "commit", PRODUCER)
    acquits(t5_markers.check, walked(data(0, b"a"), commit, again, data(3, b"b"), marker(4, "commit", PRODUCER)))
    acquits(t5_markers.check, walked(data(0, b"a"), marker(1, "commit", (7, 1)), marker(2, "abort", (7, 2))))
    acquits(t5_markers.check, walked(marker(0, "abort", (7, 2)), data(1, b"c", 3, transactional=False)))
    hollow = data(0, b"a")._replace(records=())
    acquits(t5_markers.check, walked(hollow))


def test_t5_accuses_records_without_a_marker() -> None:
    accuses(t5_markers.check, walked(data(0, b"a")), "the batch of producer 7:0 at t-0 offset 0 has no marker .* x1")


def test_t5_accuses_one_marker_for_two_transactions_or_epochs() -> None:
    both = walked(data(0, b"a"), data(1, b"b"), marker(2, "commit", PRODUCER))
    accuses(t5_markers.check, both, "offset 1 is of transaction x2, and x1 has no marker before it")
    epochs = walked(data(0, b"a"), data(1, b"z", 1), marker(2, "commit", (7, 1)))
    accuses(t5_markers.check, epochs, "7:1 at t-0 offset 1 continues what began with epoch 0 at 0")
    old = walked(data(0, b"a", 1), marker(1, "commit", (7, 0)))
    accuses(t5_markers.check, old, "the commit marker of producer 7:0 .* ends what was written with epoch 1 at 0")


def test_t5_accuses_a_marker_that_ends_a_transaction_otherwise_than_it_ended() -> None:
    accuses(
        t5_markers.check,
        walked(data(0, b"a"), marker(1, "abort", PRODUCER)),
        "ends transaction x1, which was committed",
    )
    aborted = history(sent(b"a", 0), logs=[final(data(0, b"a"), marker(1, "commit", PRODUCER))])
    accuses(t5_markers.check, aborted, "the commit marker .* offset 1 ends transaction x1, which was aborted")
    unknown = history(sent(b"a", 0), ended(2.0, "unknown"), logs=aborted.final_logs.values())
    acquits(t5_markers.check, unknown)


def test_t5_accuses_a_plain_batch_inside_a_transaction() -> None:
    inside = walked(data(0, b"a"), data(1, b"z", transactional=False), marker(2, "commit", PRODUCER))
    accuses(t5_markers.check, inside, "offset 1 is not transactional, inside the transaction that began at 0")


# --- T6


def offset_commit(offset: int, s: float, transaction: str | None = "x1", outcome: Any = "ok") -> CommitOffset:
    return CommitOffset(
        process="c1",
        invoked_s=s,
        ended_s=s + 0.1,
        outcome=outcome,
        group="g",
        topic="t",
        partition=0,
        offset=offset,
        transaction=transaction,
    )


def told(offset: int) -> FetchOffset:
    return FetchOffset(
        process="c2", invoked_s=9.0, ended_s=9.1, outcome="ok", group="g", topic="t", partition=0, offset=offset
    )


def states(offset: int) -> dict[str, GroupState]:
    return {"g": GroupState("g", "Empty", (), (("t", 0, offset),))}


def test_t6_acquits_offsets_that_follow_their_transaction() -> None:
    inside = offset_commit(5, 1.0)
    acquits(t6_offsets.check, history(inside, ended(2.0), told(5), groups_after_restart=states(5)))
    acquits(t6_offsets.check, history(inside, ended(2.0, is_commit=False), told(-1)))
    acquits(t6_offsets.check, history(inside, ended(2.0, "unknown"), told(5)))
    acquits(t6_offsets.check, history(inside, offset_commit(5, 3.0, None), told(5)))
    later = offset_commit(6, 1.05, None)
    acquits(t6_offsets.check, history(inside, later, ended(2.0), groups_after_restart=states(6)))


def test_t6_accuses_an_offset_of_an_aborted_transaction_that_is_told() -> None:
    aborted = history(offset_commit(5, 1.0), ended(2.0, is_commit=False), told(5))
    accuses(
        t6_offsets.check, aborted, "offset 5 of group g for t-0 .*transaction x1.* was never committed, .* told to c2"
    )
    in_the_end = history(offset_commit(5, 1.0), groups_after_restart=states(5))
    accuses(t6_offsets.check, in_the_end, "was never committed, and was told to the last look after the restart")


def test_t6_accuses_a_group_without_the_offset_of_a_committed_transaction() -> None:
    before = offset_commit(4, 0.5, None)
    lost = history(before, offset_commit(5, 1.0), ended(2.0), groups_after_restart=states(4))
    accuses(t6_offsets.check, lost, "offset 5 .* was committed, and the last look after the restart was told 4")


# --- T7


def test_t7_acquits_logs_without_an_open_transaction() -> None:
    acquits(t7_nothing_open.check, two_partitions(ended(2.0)))


def test_t7_accuses_a_last_stable_offset_that_stays_behind_and_an_open_transaction() -> None:
    one = two_partitions(ended(2.0))
    one.final_logs[PLACE].last_stable_offset = 0
    accuses(t7_nothing_open.check, one, "t-0 has the last stable offset 0 in the end, and the high watermark 2")
    accuses(t7_nothing_open.check, history(transactions_open_at_end=("x",)), "a transaction of x is open in the end")
