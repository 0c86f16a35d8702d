"""T8 accuses copies that are there twice, missing, wrong or ahead of the group's offset, and nobody else."""

from __future__ import annotations

from typing import Any

from simulation.checkers import t8_copied_once
from simulation.checkers.evidence.copies import copied_value, copy_key, copy_value, original_of
from simulation.checkers.proof.handmade import PLACE as SOURCE
from simulation.checkers.proof.handmade import accuses, acquits, batch, final, history, seen, send
from simulation.history import FinalLog, GroupState, History, Place, Seen

TARGET = Place("target", "id-2", 0)
GROUP = "g"


def copied(at: int, original: int, value: bytes | None = None, key: bytes | None = None) -> Seen:
    value = b"v%d" % original if value is None else value
    return seen(at, copy_value(f"p/{at}", value), key or copy_key(GROUP, SOURCE, original))


def source_log(count: int = 3, **others: Any) -> FinalLog:
    return final(*(batch(seen(offset, b"v%d" % offset)) for offset in range(count)), place=SOURCE, **others)


def run(*copies: Seen, committed: int = 3, source: FinalLog | None = None, **target: Any) -> History:
    states = {GROUP: GroupState(GROUP, "Empty", (), ((SOURCE.topic, SOURCE.partition, committed),))}
    sends = [send(each.value, each.offset, key=each.key, topic="target", transaction="x1") for each in copies]
    logs = [source or source_log(), final(*map(batch, copies), place=TARGET, **target)]
    return history(*sends, logs=logs, groups_after_restart=states)


def test_a_copy_names_its_original() -> None:
    assert original_of(copy_key(GROUP, SOURCE, 7)) == (GROUP, SOURCE.topic, SOURCE.partition, 7)
    assert original_of(None) is original_of(b"k7") is None
    assert copied_value(copy_value("p/1", b"a=b")) == b"a=b"


def test_t8_acquits_copies_of_all_that_lies_before_the_groups_offset() -> None:
    acquits(t8_copied_once.check, run(copied(0, 0), copied(1, 1), copied(2, 2)))
    acquits(t8_copied_once.check, run(copied(0, 1), copied(1, 0), committed=2))
    acquits(t8_copied_once.check, run(copied(0, 0), copied(1, 0), copied(2, 1), hidden=[1], committed=2))
    acquits(t8_copied_once.check, run(copied(0, 0), copied(1, 2), source=source_log(hidden=[1])))


def test_t8_accuses_a_second_copy() -> None:
    twice = run(copied(0, 0), copied(1, 0), committed=1)
    accuses(
        t8_copied_once.check, twice, r"t-0 offset 0 was copied twice by g: to target-0 offset 0 .* target-0 offset 1"
    )


def test_t8_accuses_a_missing_copy_unless_copies_may_be_gone() -> None:
    copies = copied(0, 0), copied(1, 2)
    accuses(t8_copied_once.check, run(*copies), r"g has come to offset 3 of t-0, and there is no copy of \[1\]")
    acquits(t8_copied_once.check, run(*copies, configs={"cleanup.policy": "compact"}))
    acquits(t8_copied_once.check, run(*copies, log_start_offset=1))
    acquits(t8_copied_once.check, run(*copies, source=source_log(hidden=[1])))


def test_t8_accuses_a_copy_without_the_offset_that_belongs_to_it() -> None:
    accuses(
        t8_copied_once.check,
        run(copied(0, 0), copied(1, 1), committed=1),
        "t-0 offset 1 was copied to target-0 offset 1 .* g has only come to offset 1",
    )


def test_t8_accuses_a_copy_of_something_else_unless_the_original_is_gone() -> None:
    other = run(copied(0, 0, b"v9"), committed=1)
    accuses(t8_copied_once.check, other, "t-0 offset 0, which is 'v0', was copied to target-0 offset 0 .'p/0=v9'.")
    acquits(t8_copied_once.check, run(copied(0, 0, b"v9"), committed=1, source=source_log(0)))


def test_t8_leaves_groups_alone_that_it_knows_nothing_of() -> None:
    unknown = run(copied(0, 0))
    unknown.groups_after_restart = {}
    acquits(t8_copied_once.check, unknown)
