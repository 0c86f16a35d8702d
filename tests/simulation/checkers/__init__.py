"""What must hold of every run: one file per property, each a function from a history to sentences on what is wrong.

A checker never accuses a correct broker: unknown outcomes, retries and concurrency leave several truths, and only what
none of them explains is a violation. The invariants' names are those of the project's list (D: disk, P: producer, C:
consumer, G: groups, T: transactions, M: metadata, R: replication, L: liveness). All of them take the broker's default
``headpond.flush=ack``, under which whatever is visible has reached the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from simulation.checkers import (
    c1_visible_end,
    c2_contiguous,
    c4_search,
    d1_acknowledged_survive,
    d2_indexes,
    d3_unchanging,
    d4_only_what_was_sent,
    d5_density,
    d5_removal,
    d5_young,
    d6_deleted,
    g1_offsets,
    g2_stale_commits,
    g3_one_owner,
    g4_one_plan,
    g5_restart,
    l1_converged,
    l2_no_trouble,
    m1_images,
    m2_topic_lives,
    m3_admin_changes,
    p1_order,
    p2_no_duplicates,
    p3_fencing,
    p4_failed_sends,
    r7_offsets,
    t1_atomic,
    t2_aborted,
    t3_committed,
    t4_uncommitted,
    t5_markers,
    t6_offsets,
    t7_nothing_open,
    t8_copied_once,
)
from simulation.history import History

Check = Callable[[History], Iterator[str]]

SENTENCES_MAX = 5
"""Per checker: one cause makes many victims, and the first few tell."""

CHECKERS: dict[str, Check] = {
    "D1 acknowledged records survive": d1_acknowledged_survive.check,
    "D2 indexes agree with the log": d2_indexes.check,
    "D3 what was served never changes": d3_unchanging.check,
    "D4 only what was sent is read": d4_only_what_was_sent.check,
    "D5 only retention and compaction remove records": d5_removal.check,
    "D5 offsets are in order and dense": d5_density.check,
    "D5 retention spares young records": d5_young.check,
    "D6 deleted records stay deleted": d6_deleted.check,
    "P1 records lie in the order of their sends": p1_order.check,
    "P2 no duplicates of an idempotent producer": p2_no_duplicates.check,
    "P3 a fenced producer writes no more": p3_fencing.check,
    "P4 a failed send is never read": p4_failed_sends.check,
    "C1 nothing above the visible end is read": c1_visible_end.check,
    "C2 polls are contiguous": c2_contiguous.check,
    "C4 a search finds the first record as new": c4_search.check,
    "G1 committed offsets never go back": g1_offsets.check,
    "G2 stale commits are refused": g2_stale_commits.check,
    "G3 a partition has one owner": g3_one_owner.check,
    "G4 a generation follows one plan": g4_one_plan.check,
    "G5 a restart changes no group": g5_restart.check,
    "T1 transactions are visible as a whole": t1_atomic.check,
    "T2 aborted records are never read": t2_aborted.check,
    "T3 committed records are visible": t3_committed.check,
    "T4 nothing is visible before its commit": t4_uncommitted.check,
    "T5 markers end one transaction each": t5_markers.check,
    "T6 a transaction's offsets count if it commits": t6_offsets.check,
    "T7 no transaction is open in the end": t7_nothing_open.check,
    "T8 what is copied in transactions is copied once": t8_copied_once.check,
    "M1 images follow the store": m1_images.check,
    "M2 topic ids are never reused": m2_topic_lives.check,
    "M3 acknowledged changes are in later Metadata": m3_admin_changes.check,
    "R7 a partition's offsets are in order": r7_offsets.check,
    "L1 everything converges": l1_converged.check,
    "L2 no trouble": l2_no_trouble.check,
}


class Violation(NamedTuple):
    property: str
    sentence: str


def judge(history: History) -> list[Violation]:
    """What is wrong, in the order of ``CHECKERS``; at most ``SENTENCES_MAX`` of each."""
    return [
        Violation(name, sentence)
        for name, check in CHECKERS.items()
        for sentence in islice(check(history), SENTENCES_MAX)
    ]
