"""D1-D6 accuse logs that lost, changed, invented or misplaced records, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation.checkers import (
    d1_acknowledged_survive,
    d2_indexes,
    d3_unchanging,
    d4_only_what_was_sent,
    d5_density,
    d5_removal,
    d5_young,
    d6_deleted,
)
from simulation.checkers.proof.handmade import (
    PLACE,
    accuses,
    acquits,
    batch,
    final,
    history,
    marker,
    poll,
    seen,
    send,
    with_log,
)
from simulation.history import AdminChange, BatchPosition, History, IndexEntry, OffsetsSeen, Place

COMPACTED = {"cleanup.policy": "compact"}


def two_records() -> History:
    return history(
        send(b"a", 0, key=b"k"),
        send(b"b", 1, key=b"k", s=2.0),
        poll(0, 2, seen(0, b"a", b"k"), seen(1, b"b", b"k")),
        logs=[final(batch(seen(0, b"a", b"k")), batch(seen(1, b"b", b"k")))],
    )


def change(kind: Any, *, s: float = 5.0, outcome: Any = "ok", **others: Any) -> AdminChange:
    return AdminChange(process="admin", invoked_s=s, ended_s=s + 0.1, outcome=outcome, kind=kind, topic="t", **others)


def also(one: History, *operations: Any) -> History:
    return replace(one, operations=[*one.operations, *operations])


# --- D1


def test_d1_acquits_a_log_that_has_what_was_acknowledged() -> None:
    acquits(d1_acknowledged_survive.check, two_records())


def test_d1_accuses_a_log_that_lost_an_acknowledged_record() -> None:
    lost = with_log(two_records(), fetched=(batch(seen(0, b"a", b"k")),))
    accuses(d1_acknowledged_survive.check, lost, r"'b' was acknowledged \(p1, 2.000 s.*t-0 offset 1, where nothing is")


def test_d1_accuses_a_log_that_has_another_record_or_timestamp_there() -> None:
    other = with_log(two_records(), fetched=(batch(seen(0, b"a", b"k")), batch(seen(1, b"x", b"k"))))
    accuses(d1_acknowledged_survive.check, other, r"'b' .*offset 1, where 'x' \(key 'k', timestamp 1000\) is")
    later = with_log(two_records(), fetched=(batch(seen(0, b"a", b"k", 7)), batch(seen(1, b"b", b"k"))))
    accuses(d1_acknowledged_survive.check, later, r"timestamp 1000\) was acknowledged.*timestamp 7\) is in the end")
    stamped = with_log(two_records(), fetched=later.final_logs[PLACE].fetched)
    stamped.final_logs[PLACE].configs["message.timestamp.type"] = "LogAppendTime"
    acquits(d1_acknowledged_survive.check, stamped)


def test_d1_accuses_a_log_that_is_gone_unless_its_topic_was_deleted_after_the_send() -> None:
    gone = replace(two_records(), final_logs={})
    accuses(d1_acknowledged_survive.check, gone, "'a' .* of which there is no log", "'b' .* of which there is no log")
    acquits(d1_acknowledged_survive.check, also(gone, change("delete")))
    acquits(d1_acknowledged_survive.check, also(gone, change("delete", s=0.5, outcome="unknown")))
    earlier = also(gone, change("delete", s=0.5))
    accuses(d1_acknowledged_survive.check, earlier, "'a' .* there is no log", "'b' .* there is no log")


def test_d1_holds_the_send_that_named_a_living_topic_to_its_id() -> None:
    named = history(send(b"a", 0, topic_id="id-1"), change("delete"), logs=[final()])
    accuses(d1_acknowledged_survive.check, named, "'a' .* t-0 offset 0, where nothing is")


def test_d1_does_not_ask_for_what_was_not_acknowledged_by_all() -> None:
    weak = history(send(b"a", 0, acks=1), send(b"b", acks=0), send(b"c", outcome="unknown"), logs=[final()])
    acquits(d1_acknowledged_survive.check, weak)


def test_d1_looks_everywhere_for_what_was_acknowledged_without_an_offset() -> None:
    acquits(d1_acknowledged_survive.check, history(send(b"a", -1), logs=[final(batch(seen(0, b"a")))]))
    missing = history(send(b"a", -1), logs=[final(batch(seen(0, b"b")))])
    accuses(d1_acknowledged_survive.check, missing, "'a' was acknowledged .* in t-0, which does not hold it")


def test_d1_allows_compaction_to_remove_what_a_later_record_of_the_key_hides() -> None:
    compacted = with_log(two_records(), fetched=(batch(seen(1, b"b", b"k")),), configs=COMPACTED)
    acquits(d1_acknowledged_survive.check, compacted)
    last_lost = with_log(two_records(), fetched=(batch(seen(0, b"a", b"k")),), configs=COMPACTED)
    last_lost.final_logs[PLACE].committed = (seen(0, b"a", b"k"),)
    accuses(d1_acknowledged_survive.check, last_lost, "'b' .* offset 1, where nothing is")
    acquits(d1_acknowledged_survive.check, also(last_lost, send(None, 2, key=b"k", s=3.0)))
    acquits(d1_acknowledged_survive.check, with_log(two_records(), fetched=(), log_start_offset=2))


# --- D2


def indexed(*entries: tuple[Any, int, int], timestamps_ms: tuple[int, ...] = (10, 30, 20)) -> History:
    """Three batches of two records and 100 bytes each."""
    positions = [
        BatchPosition(PLACE, 0, 100 * number, 2 * number, 2 * number + 1, timestamp_ms)
        for number, timestamp_ms in enumerate(timestamps_ms)
    ]
    found = [IndexEntry(PLACE, kind, 0, key, position) for kind, key, position in entries]
    return history(batch_positions=positions, index_entries=found)


def test_d2_acquits_indexes_that_name_last_offsets_and_largest_timestamps() -> None:
    acquits(d2_indexes.check, indexed(("index", 3, 100), ("index", 5, 200), ("timeindex", 10, 1), ("timeindex", 30, 3)))


def test_d2_accuses_offset_entries_that_point_elsewhere_or_are_out_of_order() -> None:
    accuses(d2_indexes.check, indexed(("index", 3, 150)), "segment 0 of t-0 has offset 3 at position 150, where no")
    accuses(d2_indexes.check, indexed(("index", 2, 100)), "offset 2 at position 100, where the batch of offsets 2 to 3")
    both = indexed(("index", 5, 200), ("index", 3, 100))
    accuses(d2_indexes.check, both, "offset 3 at position 100, behind the entry for offset 5 at position 200")


def test_d2_accuses_time_entries_that_skip_a_record_as_new() -> None:
    accuses(d2_indexes.check, indexed(("timeindex", 30, 2)), "timestamp 30 at offset 2, which is not the last offset")
    accuses(d2_indexes.check, indexed(("timeindex", 25, 3)), "timestamp 25 at offset 3, whose batch has timestamp 30")
    accuses(d2_indexes.check, indexed(("timeindex", 20, 5)), "timestamp 20 at offset 5, though an earlier .* 30")
    back = indexed(("timeindex", 30, 3), ("timeindex", 10, 1))
    accuses(d2_indexes.check, back, "timestamp 10 at offset 1, behind the entry for timestamp 30")


def test_d2_ignores_the_timestamp_of_a_batch_without_records() -> None:
    one = indexed(("timeindex", 20, 5))
    hollow = batch(seen(2, b"x"), seen(3, b"y"))._replace(records=())
    acquits(d2_indexes.check, replace(one, final_logs={PLACE: final(hollow)}))


# --- D3


def test_d3_acquits_readers_that_agree() -> None:
    acquits(d3_unchanging.check, two_records())


def test_d3_accuses_a_record_that_differs_between_two_readers() -> None:
    first = poll(0, 1, seen(0, b"a"), s=1.0)
    second = poll(0, 1, seen(0, b"b"), s=2.0, process="c2")
    accuses(d3_unchanging.check, history(first, second), r"t-0 offset 0 held 'a'.* for c1 .*and 'b'.* for c2 \(2.000 s")


def test_d3_accuses_a_final_log_or_file_that_differs_from_what_was_polled() -> None:
    changed = with_log(two_records(), committed=(seen(0, b"z", b"k"),))
    accuses(d3_unchanging.check, changed, "offset 0 held 'a' .* for c1 .* 'z' .* for the final read_committed read")
    rotten = with_log(two_records(), on_disk=(batch(seen(0, b"a", b"k")), batch(seen(1, b"B", b"k"))))
    accuses(d3_unchanging.check, rotten, "offset 1 .* 'B' .* for the log files", "the batch at t-0 offset 1 is read as")


def test_d3_accuses_files_with_more_or_fewer_batches_than_are_read() -> None:
    fewer = with_log(two_records(), on_disk=(batch(seen(0, b"a", b"k")),))
    accuses(d3_unchanging.check, fewer, "t-0 has a batch at offset 1 in the end that is only read")
    more = with_log(two_records(), fetched=(batch(seen(1, b"b", b"k")),))
    accuses(d3_unchanging.check, more, "t-0 has a batch at offset 0 in the end that is only on disk")
    acquits(d3_unchanging.check, with_log(more, configs=COMPACTED))


def test_d3_acquits_a_marker_that_compaction_empties_between_the_two_readings() -> None:
    abort = marker(2, "abort", (7, 0))
    emptied = abort._replace(records=(), control="")
    compacted = with_log(two_records(), fetched=(abort,), on_disk=(emptied,), committed=(), configs=COMPACTED)
    compacted.final_logs[PLACE].high_watermark = 3
    acquits(d3_unchanging.check, compacted)
    other = with_log(compacted, on_disk=(abort._replace(control="commit"),))
    accuses(d3_unchanging.check, other, "is read as abort marker .* and is commit marker")


# --- D4


def test_d4_acquits_readers_that_got_what_was_sent() -> None:
    acquits(d4_only_what_was_sent.check, two_records())
    tombstone = history(send(None, 0, key=b"k"), logs=[final(batch(seen(0, None, b"k")))])
    acquits(d4_only_what_was_sent.check, tombstone)
    internal = Place("__consumer_offsets", "id-2", 0)
    acquits(d4_only_what_was_sent.check, history(logs=[final(batch(seen(0, b"x")), place=internal)]))


def test_d4_accuses_what_nobody_sent_or_sent_elsewhere() -> None:
    read = poll(0, 1, seen(0, b"a"))
    accuses(d4_only_what_was_sent.check, history(read), "'a' .* at t-0 offset 0 by c1 at 9.100 s, and nobody sent it")
    accuses(d4_only_what_was_sent.check, history(send(b"a", 0, partition=1), read), "but was sent to t-1")
    accuses(d4_only_what_was_sent.check, history(send(b"a", 0, topic_id="id-0"), read), "life id-0 .*, not id-1")
    accuses(d4_only_what_was_sent.check, history(send(b"a", 0, s=20.0), read), "before it was sent")


def test_d4_accuses_another_key_or_timestamp_than_was_sent() -> None:
    read = poll(0, 1, seen(0, b"a", b"k", 1_000))
    accuses(d4_only_what_was_sent.check, history(send(b"a", 0), read), r"but was sent as 'a' \(key null")
    late = send(b"a", 0, key=b"k", timestamp_ms=3)
    accuses(d4_only_what_was_sent.check, history(late, read), "but was sent as 'a' .*timestamp 3")
    acquits(d4_only_what_was_sent.check, history(replace(late, timestamp_ms=-1), read))


def test_d4_accuses_a_tombstone_that_nobody_sent() -> None:
    sent = send(None, 0, key=b"other")
    accuses(d4_only_what_was_sent.check, history(sent, poll(0, 1, seen(0, None, b"k"))), "nobody had sent a tombstone")


# --- D5


def test_d5_acquits_a_log_start_that_retention_or_delete_records_moved() -> None:
    acquits(d5_removal.check, two_records())
    shorter = with_log(two_records(), fetched=(batch(seen(1, b"b", b"k")),), log_start_offset=1)
    acquits(d5_removal.check, with_log(shorter, configs={"retention.ms": "1000"}))
    acquits(d5_removal.check, also(shorter, change("delete-records", partition=0, before_offset=1)))
    acquits(d5_removal.check, also(shorter, change("delete-records", partition=0, outcome="unknown")))
    acquits(d5_removal.check, also(shorter, change("config", configs=(("retention.bytes", "1"),))))


def test_d5_accuses_a_log_start_that_nothing_moved_or_that_is_too_high() -> None:
    shorter = with_log(two_records(), fetched=(batch(seen(1, b"b", b"k")),), log_start_offset=1)
    accuses(d5_removal.check, shorter, "the log start of t-0 is 1 in the end, though no retention")
    less = also(with_log(two_records(), fetched=(), log_start_offset=2), change("delete-records", partition=0))
    less.operations[-1].before_offset = 1  # type: ignore[attr-defined]
    accuses(d5_removal.check, less, "the log start of t-0 is 2")
    above = with_log(two_records(), log_start_offset=2, last_stable_offset=1, configs={"retention.ms": "1"})
    accuses(d5_removal.check, above, "log start of t-0 is 2 in the end, above its last stable offset 1")


def test_d5_accuses_a_log_without_a_record_that_was_served() -> None:
    lost = with_log(two_records(), fetched=(batch(seen(0, b"a", b"k")),), committed=(seen(0, b"a", b"k"),))
    accuses(d5_removal.check, lost, r"'b' .* was read at t-0 offset 1 by c1 \(9.000 s.*gone in the end")
    accuses(d5_removal.check, with_log(lost, configs=COMPACTED), "'b' .* gone in the end")
    first_lost = with_log(two_records(), fetched=(batch(seen(1, b"b", b"k")),), configs=COMPACTED)
    acquits(d5_removal.check, first_lost)


def test_density_acquits_full_logs_and_compacted_ones_with_gaps() -> None:
    acquits(d5_density.check, two_records())
    acquits(d5_density.check, history(logs=[final()]))
    gap = final(batch(seen(0, b"a")), batch(seen(5, b"b")))
    acquits(d5_density.check, history(logs=[replace(gap, configs=COMPACTED)]))
    configured = change("config", configs=(("cleanup.policy", "compact"),))
    acquits(d5_density.check, history(configured, logs=[gap]))


def test_density_accuses_gaps_overlaps_and_missing_ends() -> None:
    gap = history(logs=[final(batch(seen(0, b"a")), batch(seen(2, b"b")))])
    accuses(d5_density.check, gap, "t-0 as read has no batch for the offsets 1 to 1", "t-0 on disk has no batch")
    twice = history(logs=[final(batch(seen(0, b"a"), seen(1, b"b")), batch(seen(1, b"c")))])
    accuses(d5_density.check, twice, "as read has a batch at offset 1 behind one that ends at 1", "on disk")
    inner = history(logs=[final(batch(seen(0, b"a"), seen(2, b"b")))])
    accuses(d5_density.check, inner, r"batch of the offsets 0 to 2 with records at \[0, 2\]", "on disk")
    backwards = batch(seen(0, b"a"), seen(3, b"b"), seen(2, b"c"), seen(4, b"d"))
    unordered = history(logs=[final(backwards, configs=COMPACTED)])
    accuses(d5_density.check, unordered, r"records at \[0, 3, 2, 4\]", "on disk")


def test_density_accuses_a_read_that_does_not_reach_from_log_start_to_high_watermark() -> None:
    accuses(d5_density.check, with_log(two_records(), high_watermark=3), "ends with offset 1, its high watermark is 3")
    late = with_log(two_records(), fetched=(batch(seen(1, b"b", b"k")),))
    accuses(d5_density.check, late, "t-0 as read begins with offset 1, its log start is 0")
    accuses(d5_density.check, with_log(two_records(), fetched=()), "t-0 as read is empty, though its log start is 0")


# --- D5, by time

RETENTION = change("config", s=0.5, configs=(("retention.ms", "5000"),))


def look(start: int, *, s: float, wall_ms: int = -1, place: Place = PLACE) -> OffsetsSeen:
    return OffsetsSeen(s, place, start, 2, 2, 2, wall_ms=wall_ms)


def test_d5_accuses_a_retention_that_removes_a_young_record_by_the_brokers_clock() -> None:
    young = [look(0, s=1.0, wall_ms=2_000), look(1, s=3.0, wall_ms=4_000)]
    accuses(
        d5_young.check,
        history(send(b"a", 0), RETENTION, offsets_seen=young),
        r"'a' .* offset 0 was removed by 3.000 s, when it was at most 3000 ms old, and retention.ms is 5000",
    )
    old = [look(0, s=1.0, wall_ms=2_000), look(1, s=3.0, wall_ms=6_500)]
    acquits(d5_young.check, history(send(b"a", 0), RETENTION, offsets_seen=old))
    was_ahead = [look(0, s=1.0, wall_ms=90_000), look(1, s=3.0, wall_ms=4_000)]
    acquits(d5_young.check, history(send(b"a", 0), RETENTION, offsets_seen=was_ahead))


def test_d5_excuses_a_young_record_that_a_deletion_or_another_policy_may_have_removed() -> None:
    young = [look(1, s=3.0, wall_ms=4_000)]
    acquits(d5_young.check, history(send(b"a", 0), offsets_seen=young))
    for excuse in (
        change("delete-records", partition=0, before_offset=1),
        change("delete-records", partition=0, outcome="unknown"),
        change("config", configs=(("retention.bytes", "1"),)),
        change("config", configs=(("retention.ms", "100"),), outcome="unknown"),
        change("config", configs=(("message.timestamp.type", "LogAppendTime"),)),
        change("delete"),
    ):
        acquits(d5_young.check, history(send(b"a", 0), RETENTION, excuse, offsets_seen=young))
    failed = change("delete-records", partition=0, before_offset=1, outcome="failed")
    accuses(d5_young.check, history(send(b"a", 0), RETENTION, failed, offsets_seen=young), "was removed")


# --- D6


def test_d6_accuses_a_log_start_that_went_back_after_an_acknowledged_deletion() -> None:
    deleted = change("delete-records", partition=0, before_offset=1, low_watermark=1)
    acquits(d6_deleted.check, history(deleted, offsets_seen=[look(0, s=5.0), look(1, s=6.0)]))
    back = history(deleted, offsets_seen=[look(1, s=6.0), look(0, s=7.0)])
    accuses(
        d6_deleted.check, back, "log start of t-0 is 0 at 7.000 s, though admin was told that all below 1 is deleted"
    )
    elsewhere = Place("t", "id-1", 1)
    acquits(d6_deleted.check, history(deleted, offsets_seen=[look(0, s=7.0, place=elsewhere)]))


def test_d6_accuses_deleted_records_that_are_read_or_there_in_the_end() -> None:
    deleted = change("delete-records", partition=0, before_offset=1, low_watermark=1)
    accuses(d6_deleted.check, history(deleted, poll(0, 1, seen(0, b"a"))), "t-0 offset 0 was read by c1")
    acquits(d6_deleted.check, history(deleted, poll(0, 1, seen(0, b"a"), s=5.0)))
    there = history(deleted, logs=[final(batch(seen(0, b"a")))])
    accuses(d6_deleted.check, there, "the log start of t-0 is 0 in the end")


def test_d6_excuses_a_topic_that_was_made_anew_and_a_deletion_without_an_answer() -> None:
    back = [look(0, s=7.0)]
    deleted = change("delete-records", partition=0, before_offset=1, low_watermark=1)
    acquits(d6_deleted.check, history(deleted, change("delete", s=6.0), offsets_seen=back))
    acquits(d6_deleted.check, history(deleted, change("delete", s=1.0, outcome="unknown"), offsets_seen=back))
    accuses(d6_deleted.check, history(deleted, change("delete", s=1.0), offsets_seen=back), "the log start of t-0 is 0")
    unknown = change("delete-records", partition=0, before_offset=1, outcome="unknown")
    acquits(d6_deleted.check, history(unknown, offsets_seen=back))
