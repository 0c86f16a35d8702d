"""P1-P4 accuse logs that reorder, repeat, take fenced or failed sends, and nobody else."""

from __future__ import annotations

from dataclasses import replace

from simulation.checkers import p1_order, p2_no_duplicates, p3_fencing, p4_failed_sends
from simulation.checkers.proof.handmade import accuses, acquits, batch, final, history, marker, poll, seen, send
from simulation.history import AdminChange, Batch, Fenced, Send


def exact(value: bytes, offset: int, order: int, *, s: float = 1.0) -> Send:
    return send(value, offset, order=order, s=s, is_idempotent=True)


# --- P1


def test_p1_acquits_offsets_in_the_order_of_the_sends() -> None:
    acquits(p1_order.check, history(exact(b"a", 0, 0), exact(b"b", 1, 1), exact(b"c", 5, 2)))
    other = replace(exact(b"b", 0, 1), partition=1)
    acquits(p1_order.check, history(exact(b"a", 3, 0), other))


def test_p1_accuses_an_idempotent_producer_whose_records_changed_places() -> None:
    swapped = history(exact(b"a", 1, 0), exact(b"b", 0, 1))
    accuses(p1_order.check, swapped, r"'b' at t-0 offset 0 \(p1.*though p1 had sent 'a' at t-0 offset 1")
    transactional = history(send(b"a", 1, order=0, transaction="x"), send(b"b", 0, order=1, transaction="x"))
    accuses(p1_order.check, transactional, "'b' at t-0 offset 0")


def test_p1_acquits_plain_sends_that_overlap_and_accuses_those_that_do_not() -> None:
    acquits(p1_order.check, history(send(b"a", 1, order=0), send(b"b", 0, order=1)))
    apart = history(send(b"a", 1), send(b"b", 0, s=2.0, process="p2"))
    accuses(p1_order.check, apart, r"'b' at t-0 offset 0 \(p2, 2.000 s.*though 'a' at t-0 offset 1 .* was acknowledged")


def test_p1_allows_the_offset_of_a_send_that_a_power_cut_took_back_to_be_used_again() -> None:
    acquits(p1_order.check, history(send(b"a", 1, acks=1), send(b"b", 0, s=2.0)))


def test_p1_does_not_compare_offsets_over_the_lives_of_a_topic() -> None:
    deleted = AdminChange(process="x", invoked_s=1.5, ended_s=1.6, outcome="ok", kind="delete", topic="t")
    acquits(p1_order.check, history(send(b"a", 1), deleted, send(b"b", 0, s=2.0)))
    acquits(p1_order.check, history(send(b"a", 1, topic_id="1"), deleted, send(b"b", 0, s=2.0, topic_id="2")))
    same = history(send(b"a", 1, topic_id="1"), deleted, send(b"b", 0, s=2.0, topic_id="1"))
    accuses(p1_order.check, same, "'b' at t-0 offset 0")


# --- P2


def test_p2_acquits_single_records_and_plain_duplicates() -> None:
    once = final(batch(seen(0, b"a"), producer=(7, 0), sequence=0), batch(seen(1, b"b"), producer=(7, 0), sequence=1))
    acquits(p2_no_duplicates.check, history(exact(b"a", 0, 0), exact(b"b", 1, 1), logs=[once]))
    plain = final(batch(seen(0, b"a")), batch(seen(1, b"a")))
    acquits(p2_no_duplicates.check, history(send(b"a", 0), logs=[plain]))
    bumped = final(batch(seen(0, b"a"), producer=(7, 0), sequence=3), batch(seen(1, b"b"), producer=(7, 1), sequence=0))
    acquits(p2_no_duplicates.check, history(logs=[bumped]))


def test_p2_accuses_a_value_of_an_idempotent_producer_that_is_there_twice() -> None:
    twice = final(batch(seen(0, b"a")), batch(seen(1, b"a")))
    where = "is twice in t-0 {}: at offset 0 and at 1"
    accuses(
        p2_no_duplicates.check,
        history(exact(b"a", 0, 0), logs=[twice]),
        where.format("as read"),
        where.format("on disk"),
    )


def test_p2_accuses_sequence_numbers_that_repeat() -> None:
    pair = batch(seen(0, b"a"), seen(1, b"b"), producer=(7, 0), sequence=4)
    again = history(logs=[final(pair, batch(seen(2, b"c"), producer=(7, 0), sequence=5), on_disk=())])
    accuses(p2_no_duplicates.check, again, "producer 7:0 has sequence 5 at offset 2 of t-0 as read, behind .* 5")


# --- P3


def of_epoch(offset: int, epoch: int) -> Batch:
    return batch(seen(offset, b"%d" % offset), producer=(7, epoch), sequence=offset)


FENCE = Fenced(
    process="p2", invoked_s=2.0, ended_s=2.5, outcome="ok", transactional_id="x", producer_id=7, producer_epoch=4
)


def late_send(s: float, epoch: int = 3) -> Send:
    return send(b"a", 9, s=s, transaction="x1", producer_id=7, producer_epoch=epoch)


def test_p3_acquits_growing_epochs_and_sends_before_or_during_the_fence() -> None:
    acquits(p3_fencing.check, history(logs=[final(of_epoch(0, 0), marker(1, "abort", (7, 1)), of_epoch(2, 1))]))
    acquits(p3_fencing.check, history(FENCE, late_send(1.0), late_send(2.2), late_send(3.0, epoch=4)))
    acquits(p3_fencing.check, history(replace(FENCE, outcome="unknown"), late_send(3.0)))
    acquits(p3_fencing.check, history(FENCE, replace(late_send(3.0), outcome="unknown")))
    acquits(p3_fencing.check, history(FENCE, replace(late_send(3.0), producer_id=6)))


def test_p3_accuses_a_log_with_an_older_epoch_behind_a_newer_one() -> None:
    zombie = history(logs=[final(of_epoch(0, 1), of_epoch(1, 0), on_disk=())])
    accuses(p3_fencing.check, zombie, "producer 7 has epoch 0 at offset 1 of t-0 as read, behind its epoch 1")
    late_marker = history(logs=[final(of_epoch(0, 1), marker(1, "abort", (7, 0)), fetched=())])
    accuses(p3_fencing.check, late_marker, "epoch 0 at offset 1 of t-0 on disk")


def test_p3_accuses_an_acknowledged_send_of_a_fenced_producer() -> None:
    accuses(p3_fencing.check, history(FENCE, late_send(3.0)), "'a' was acknowledged at t-0 offset 9 .* 7:3 .* epoch 4")


# --- P4


def test_p4_acquits_failed_sends_that_nobody_read_and_unknown_ones() -> None:
    log = final(batch(seen(0, b"b")))
    acquits(p4_failed_sends.check, history(send(b"a", outcome="failed"), send(b"b", outcome="unknown"), logs=[log]))


def test_p4_accuses_a_failed_send_that_is_read_or_on_disk() -> None:
    failed = send(b"a", outcome="failed", error=87)
    polled = history(failed, poll(0, 1, seen(0, b"a")))
    accuses(p4_failed_sends.check, polled, r"'a' failed with error 87 \(p1.*is at t-0 offset 0 for c1")
    on_disk = history(failed, logs=[final(fetched=(), on_disk=(batch(seen(3, b"a")),))])
    accuses(p4_failed_sends.check, on_disk, "is at t-0 offset 3 for a walk over the log files")
