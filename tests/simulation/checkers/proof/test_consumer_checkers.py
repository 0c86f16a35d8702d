"""C1, C2, C4 and R7 accuse readers that see too much, skip, or search wrongly, and offsets that go back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation.checkers import c1_visible_end, c2_contiguous, c4_search, r7_offsets
from simulation.checkers.proof.handmade import PLACE, accuses, acquits, batch, final, history, marker, poll, seen, send
from simulation.history import History, OffsetsSeen, Search

# --- C1


def test_c1_acquits_polls_below_what_they_may_see() -> None:
    acquits(c1_visible_end.check, history(poll(0, 2, seen(0, b"a"), seen(1, b"b"), high_watermark=2)))
    committed = poll(0, 1, seen(0, b"a"), isolation="read_committed", high_watermark=5, last_stable_offset=1)
    acquits(c1_visible_end.check, history(committed, poll(0, 1, seen(0, b"a")), poll(7, 7)))


def test_c1_accuses_records_at_or_above_the_high_watermark_or_the_last_stable_offset() -> None:
    above = poll(0, 2, seen(0, b"a"), seen(1, b"b"), high_watermark=1)
    accuses(c1_visible_end.check, history(above), "c1 .* was given 'b' .* at t-0 offset 1, and a high watermark of 1")
    unstable = poll(0, 1, seen(0, b"a"), isolation="read_committed", high_watermark=5, last_stable_offset=0)
    accuses(c1_visible_end.check, history(unstable), "'a' .* at t-0 offset 0, and a last stable offset of 0")
    led = poll(0, 3, seen(0, b"a"), high_watermark=2)
    accuses(c1_visible_end.check, history(led), "was led to t-0 offset 3, above the high watermark 2")


# --- C2

THREE = final(batch(seen(0, b"a")), batch(seen(1, b"b")), batch(seen(2, b"c")), hidden=[1])


def test_c2_acquits_polls_that_go_on_where_the_last_one_ended() -> None:
    going_on = history(
        poll(0, 2, seen(0, b"a"), seen(1, b"b"), s=1.0),
        poll(2, 2, s=2.0, outcome="unknown"),
        poll(2, 3, seen(2, b"c"), s=3.0),
        poll(0, 1, seen(0, b"a"), s=4.0, session=1),
        logs=[THREE],
    )
    acquits(c2_contiguous.check, going_on)


def test_c2_acquits_a_reader_that_is_not_given_aborted_records() -> None:
    committed = poll(0, 3, seen(0, b"a"), seen(2, b"c"), isolation="read_committed")
    acquits(c2_contiguous.check, history(committed, logs=[THREE]))


def test_c2_accuses_polls_that_jump_or_go_back() -> None:
    ahead = history(poll(0, 1, seen(0, b"a"), s=1.0), poll(2, 3, seen(2, b"c"), s=2.0))
    accuses(c2_contiguous.check, ahead, "t-0, 2.000 s.* asked for offset 2, though its last poll .* left it at 1")
    back = history(poll(0, 1, seen(0, b"a"), s=1.0), poll(0, 1, seen(0, b"a"), s=2.0))
    accuses(c2_contiguous.check, back, "asked for offset 0, though")


def test_c2_accuses_records_outside_of_the_positions_or_out_of_order() -> None:
    accuses(c2_contiguous.check, history(poll(1, 2, seen(0, b"a"))), "asked for offset 1, and got offset 0 where 1")
    accuses(c2_contiguous.check, history(poll(0, 3, seen(1, b"b"), seen(0, b"a"))), "got offset 0 where 2 or more")
    accuses(c2_contiguous.check, history(poll(0, 1, seen(1, b"b"))), "was led to position 1, where 2 or more was due")
    accuses(c2_contiguous.check, history(poll(4, 3)), "was led to position 3, where 4 or more was due")


def test_c2_accuses_a_poll_that_leaves_a_visible_record_out() -> None:
    skipped = poll(0, 3, seen(0, b"a"), seen(2, b"c"))
    accuses(c2_contiguous.check, history(skipped, logs=[THREE]), r"from offset 0 to 3 without the records at \[1\]")
    committed = poll(0, 3, seen(2, b"c"), isolation="read_committed")
    accuses(c2_contiguous.check, history(committed, logs=[THREE]), r"without the records at \[0\]")


# --- C4


def search(timestamp_ms: int, offset: int, found_ms: int = -1, **others: Any) -> History:
    """In a log with the timestamps 10, 30, 20 and a marker of 40."""
    asked = Search(
        process="c1",
        invoked_s=5.0,
        ended_s=5.1,
        outcome="ok",
        place=PLACE,
        timestamp_ms=timestamp_ms,
        offset=offset,
        found_timestamp_ms=found_ms,
    )
    records = seen(0, b"a", None, 10), seen(1, b"b", None, 30), seen(2, b"c", None, 20)
    sends = [send(each.value, each.offset, timestamp_ms=each.timestamp_ms) for each in records]
    log = final(*(batch(each) for each in records), marker(3, "commit", (7, 0), timestamp_ms=40))
    return history(*sends, replace(asked, **others), logs=[log])


def test_c4_acquits_searches_that_find_the_first_record_as_new() -> None:
    for one in (search(0, 0, 10), search(11, 1, 30), search(30, 1, 30), search(31, 3, 40), search(41, -1)):
        acquits(c4_search.check, one)
    acquits(c4_search.check, search(20, -1, isolation="read_committed"))
    acquits(c4_search.check, search(20, -1, invoked_s=0.5))
    acquits(c4_search.check, search(20, 0, outcome="unknown"))


def test_c4_accuses_a_search_that_passes_over_a_record() -> None:
    accuses(c4_search.check, search(20, 2, 20), "searched t-0 for timestamp 20 and was told offset 2, though offset 1")
    accuses(c4_search.check, search(20, -1), "found nothing, though offset 1 with timestamp 30 was acknowledged")


def test_c4_accuses_a_search_that_names_an_older_record_or_none_at_all() -> None:
    accuses(c4_search.check, search(20, 0, 20), "told offset 0 and timestamp 20, though the record there has .* 10")
    accuses(c4_search.check, search(20, 1, 25), "told offset 1 and timestamp 25, though the record there has .* 30")
    accuses(c4_search.check, search(50, 9, 50), "told offset 9, where no record is in the end")


def test_c4_allows_the_answer_to_be_gone_since() -> None:
    one = search(10, 0, 10)
    shorter = replace(one.final_logs[PLACE], log_start_offset=1)
    acquits(c4_search.check, replace(one, final_logs={PLACE: shorter}))
    compacted = replace(one.final_logs[PLACE], fetched=(batch(seen(3, b"d", None, 50)),), log_start_offset=0)
    compacted.configs["cleanup.policy"] = "compact"
    acquits(c4_search.check, replace(one, final_logs={PLACE: compacted}))


# --- R7


def offsets(at_s: float, start: int, stable: int, high_watermark: int, end: int, *, life: int = 0) -> OffsetsSeen:
    return OffsetsSeen(at_s, PLACE, start, stable, high_watermark, end, life)


def test_r7_acquits_offsets_in_order_that_grow_within_a_life() -> None:
    looks = [offsets(1.0, 0, 1, 2, 3), offsets(2.0, 0, 3, 3, 3), offsets(3.0, 0, 0, 0, 3, life=1)]
    told = poll(0, 0, high_watermark=3, last_stable_offset=2)
    acquits(r7_offsets.check, history(told, poll(0, 0), logs=[THREE], offsets_seen=looks))


def test_r7_accuses_offsets_out_of_order_wherever_they_are_seen() -> None:
    accuses(r7_offsets.check, history(offsets_seen=[offsets(1.0, 0, 2, 1, 3)]), r"t-0 has .* \(0, 2, 1, 3\) at 1.000 s")
    told = poll(0, 0, high_watermark=1, last_stable_offset=2)
    accuses(r7_offsets.check, history(told), r"\(-1, 2, 1\) as told to c1")
    accuses(r7_offsets.check, history(logs=[replace(THREE, log_end_offset=2)]), r"\(0, 3, 3, 2\) in the end")


def test_r7_accuses_a_high_watermark_that_goes_back() -> None:
    back = [offsets(1.0, 0, 2, 2, 3), offsets(2.0, 0, 1, 1, 3)]
    accuses(r7_offsets.check, history(offsets_seen=back), "high watermark 2 at 1.000 s, and 1 at 2.000 s, in the same")
    seen_before = history(logs=[THREE], offsets_seen=[offsets(1.0, 0, 4, 4, 4)])
    accuses(r7_offsets.check, seen_before, "high watermark 3 in the end, though 4 was seen at 1.000 s")
    told = history(poll(0, 0, high_watermark=4), logs=[THREE])
    accuses(r7_offsets.check, told, "high watermark 3 in the end, though 4 was told to c1")
