"""All checkers together: a good run is acquitted, a bad one is named by property, and nobody talks too much."""

from __future__ import annotations

from simulation.checkers import CHECKERS, SENTENCES_MAX, Violation, judge
from simulation.checkers.proof.handmade import batch, final, history, marker, poll, seen, send
from simulation.history import EndTransaction, History


def a_good_run() -> History:
    first = send(b"a", 0, s=1.0, is_idempotent=True, order=0)
    inside = send(b"b", 1, s=2.0, transaction="x1", order=1)
    end = EndTransaction(
        process="p1",
        invoked_s=3.0,
        ended_s=3.1,
        outcome="ok",
        transaction="x1",
        transactional_id="x",
        is_commit=True,
    )
    read = poll(0, 3, seen(0, b"a"), seen(1, b"b"), isolation="read_committed", high_watermark=3, last_stable_offset=3)
    transactional = batch(seen(1, b"b"), producer=(7, 0), sequence=0, transactional=True)
    log = final(batch(seen(0, b"a"), producer=(6, 0), sequence=0), transactional, marker(2, "commit", (7, 0)))
    return history(first, inside, end, read, logs=[log])


def test_a_good_run_and_an_empty_one_are_acquitted() -> None:
    assert judge(a_good_run()) == []
    assert judge(history()) == []


def test_a_lost_record_is_named_by_each_property_that_it_violates() -> None:
    bad = a_good_run()
    for log in bad.final_logs.values():
        log.fetched = log.fetched[1:]
    violations = judge(bad)
    assert violations[0].property == "D1 acknowledged records survive"
    assert "'a' was acknowledged" in violations[0].sentence
    assert [each.property[:2] for each in violations] == ["D1", "D3", "D5", "D5"]


def test_no_property_says_more_than_a_few_sentences() -> None:
    bad = history(unconverged=[f"thing {number}" for number in range(100)])
    expected = [f"faults ended at 0.000 s, and yet: thing {number}" for number in range(SENTENCES_MAX)]
    assert judge(bad) == [Violation("L1 everything converges", sentence) for sentence in expected]


def test_every_checker_has_a_name_and_a_function_of_its_own() -> None:
    assert len(set(CHECKERS.values())) == len(CHECKERS)
