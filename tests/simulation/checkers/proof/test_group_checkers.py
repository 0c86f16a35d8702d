"""G1-G5 accuse groups that lose or mix up offsets, owners and plans, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation.checkers import g1_offsets, g2_stale_commits, g3_one_owner, g4_one_plan, g5_restart
from simulation.checkers.proof.handmade import accuses, acquits, history
from simulation.history import (
    AdminChange,
    CommitOffset,
    DeleteOffsets,
    EndTransaction,
    FetchOffset,
    GroupState,
    Joined,
    Ownership,
)


def commit(offset: int, s: float, to_s: float | None = None, **others: Any) -> CommitOffset:
    fields: dict[str, Any] = {"process": "c1", "outcome": "ok", "group": "g", "topic": "t", "partition": 0}
    ended_s = s + 0.1 if to_s is None else to_s
    return CommitOffset(offset=offset, invoked_s=s, ended_s=ended_s, **(fields | others))


def fetch(offset: int, s: float, to_s: float | None = None, **others: Any) -> FetchOffset:
    fields: dict[str, Any] = {"process": "c2", "outcome": "ok", "group": "g", "topic": "t", "partition": 0}
    ended_s = s + 0.1 if to_s is None else to_s
    return FetchOffset(offset=offset, invoked_s=s, ended_s=ended_s, **(fields | others))


def ended(s: float, outcome: Any = "ok", *, is_commit: bool = True) -> EndTransaction:
    return EndTransaction(
        process="c1",
        invoked_s=s,
        ended_s=s + 0.1,
        outcome=outcome,
        transaction="x1",
        transactional_id="x",
        is_commit=is_commit,
    )


def deleted(s: float, topic: str = "", outcome: Any = "ok") -> DeleteOffsets:
    return DeleteOffsets(process="admin", invoked_s=s, ended_s=s + 0.1, outcome=outcome, group="g", topic=topic)


def changed(kind: Any, s: float) -> AdminChange:
    return AdminChange(process="admin", invoked_s=s, ended_s=s + 0.1, outcome="ok", kind=kind, topic="t")


def state(*offsets: tuple[str, int, int], kind: str = "Empty", members: tuple[str, ...] = ()) -> dict[str, GroupState]:
    return {"g": GroupState("g", kind, members, offsets)}


# --- G1


def test_g1_acquits_reads_of_the_last_commit_or_of_none_before_it() -> None:
    acquits(g1_offsets.check, history(fetch(-1, 0.0), commit(5, 1.0), fetch(5, 2.0), commit(3, 3.0), fetch(3, 4.0)))


def test_g1_acquits_reads_and_commits_that_overlap() -> None:
    both = commit(5, 1.0, 3.0), commit(6, 1.0, 3.0)
    for told in (5, 6):
        acquits(g1_offsets.check, history(*both, fetch(told, 4.0)))
    acquits(g1_offsets.check, history(commit(5, 1.0), commit(6, 2.0, 4.0), fetch(5, 3.0), fetch(6, 3.5), fetch(6, 5.0)))


def test_g1_acquits_a_commit_with_an_unknown_outcome_that_is_seen_or_not_or_late() -> None:
    unknown = commit(6, 2.0, outcome="unknown")
    acquits(g1_offsets.check, history(commit(5, 1.0), unknown, fetch(5, 3.0), fetch(6, 4.0)))
    acquits(g1_offsets.check, history(commit(5, 1.0), unknown, commit(7, 3.0), fetch(7, 4.0), fetch(6, 5.0)))


def test_g1_accuses_a_read_of_an_earlier_commit() -> None:
    old = history(commit(5, 1.0), commit(6, 2.0), fetch(5, 3.0))
    accuses(g1_offsets.check, old, r"c2 \(3.000 s.*told offset 5 of group g for t-0, though the commit of 6 by c1")
    lost = history(commit(5, 1.0), fetch(-1, 3.0))
    accuses(g1_offsets.check, lost, "told offset -1 of group g for t-0, though the commit of 5")


def test_g1_accuses_reads_that_go_back_behind_an_unknown_commit_once_it_was_seen() -> None:
    unknown = commit(6, 2.0, outcome="unknown")
    back = history(commit(5, 1.0), unknown, fetch(6, 3.0), fetch(5, 4.0))
    accuses(g1_offsets.check, back, "told offset 5 .* though the commit of 6")


def test_g1_accuses_a_read_of_what_nobody_committed_or_only_in_vain() -> None:
    accuses(g1_offsets.check, history(commit(5, 1.0), fetch(7, 2.0)), "told offset 7 .* which nobody had committed")
    failed = history(commit(5, 1.0, outcome="failed"), fetch(5, 2.0))
    accuses(g1_offsets.check, failed, "told offset 5 .* which nobody had committed")
    accuses(g1_offsets.check, history(fetch(5, 1.0), commit(5, 2.0)), "told offset 5 .* which nobody had committed")


def test_g1_knows_deletions_of_the_group_its_offsets_and_its_topic() -> None:
    for gone in (deleted(2.0), deleted(2.0, "t")):
        acquits(g1_offsets.check, history(commit(5, 1.0), gone, fetch(-1, 3.0), commit(6, 4.0), fetch(6, 5.0)))
        accuses(g1_offsets.check, history(commit(5, 1.0), gone, fetch(5, 3.0)), "told offset 5 .* though the deletion")
    accuses(g1_offsets.check, history(commit(5, 1.0), deleted(2.0, "u"), fetch(-1, 3.0)), "told offset -1")
    again = commit(5, 1.0), changed("delete", 2.0), changed("create", 3.0)
    acquits(g1_offsets.check, history(*again, fetch(-1, 4.0)))
    acquits(g1_offsets.check, history(*again[:2], fetch(5, 2.5)))
    accuses(g1_offsets.check, history(*again, fetch(5, 4.0)), "told offset 5 .* though the new creation of the topic")
    accuses(g1_offsets.check, history(*again, commit(6, 4.0), fetch(-1, 5.0)), "told offset -1 .* the commit of 6")


def test_g1_counts_a_transactions_commit_once_its_end_was_asked_for() -> None:
    inside = commit(5, 1.0, transaction="x1")
    acquits(g1_offsets.check, history(inside, fetch(-1, 1.5), ended(2.0), fetch(-1, 3.0), fetch(5, 4.0)))
    early = history(inside, fetch(5, 1.5), ended(2.0))
    accuses(g1_offsets.check, early, "told offset 5 .* which nobody had committed")
    stable = history(inside, ended(2.0), fetch(-1, 3.0, requires_stable=True))
    accuses(g1_offsets.check, stable, "told offset -1 .* though the commit of 5 by c1 in transaction x1")
    unknown = history(inside, ended(2.0, "unknown"), fetch(-1, 3.0, requires_stable=True), fetch(5, 4.0))
    acquits(g1_offsets.check, unknown)
    aborted = history(inside, ended(2.0, is_commit=False), fetch(5, 3.0))
    accuses(g1_offsets.check, aborted, "told offset 5 .* which nobody had committed")


def test_g1_lets_the_commit_count_that_was_written_later_whenever_the_transaction_ends() -> None:
    plain_later = commit(5, 1.0, transaction="x1"), commit(6, 2.0), ended(3.0)
    acquits(g1_offsets.check, history(*plain_later, groups_after_restart=state(("t", 0, 6))))
    accuses(
        g1_offsets.check,
        history(*plain_later, groups_after_restart=state(("t", 0, 5))),
        "the last look after the restart was told offset 5 .* though the commit of 6",
    )


def test_g1_reads_the_final_states_too() -> None:
    one = commit(5, 1.0)
    acquits(g1_offsets.check, history(one, groups_before_restart=state(("t", 0, 5))))
    accuses(g1_offsets.check, history(one, groups_before_restart=state()), "before the restart was told offset -1")
    invented = history(groups_after_restart=state(("t", 0, 9)))
    accuses(g1_offsets.check, invented, "after the restart was told offset 9 .* which nobody had committed")


# --- G2


def joined(epoch: int, s: float, member: str = "m1", **others: Any) -> Joined:
    fields: dict[str, Any] = {"process": "c1", "outcome": "ok", "group": "g", "protocol": "classic"}
    return Joined(member=member, epoch=epoch, invoked_s=s, ended_s=s, **(fields | others))


def test_g2_acquits_commits_of_the_current_generation_and_of_nobody() -> None:
    first = joined(1, 1.0), commit(5, 2.0, epoch=1, member="m1")
    acquits(g2_stale_commits.check, history(*first, joined(2, 3.0), commit(6, 4.0, epoch=2), commit(7, 5.0)))
    acquits(g2_stale_commits.check, history(joined(1, 1.0), commit(5, 2.0, 3.0, epoch=1), joined(2, 2.5)))
    acquits(g2_stale_commits.check, history(joined(2, 1.0), commit(5, 2.0, epoch=1, outcome="failed")))


def test_g2_accuses_a_commit_of_an_older_generation() -> None:
    stale = history(joined(1, 1.0), joined(2, 2.0, "m2"), commit(5, 3.0, epoch=1, member="m1"))
    accuses(g2_stale_commits.check, stale, "group g took the commit of t-0 offset 5 by member m1 .* m2 .* generation 2")
    acquits(g2_stale_commits.check, replace(stale, operations=[*stale.operations, deleted(2.5)]))


def test_g2_acquits_a_group_that_was_forgotten_and_began_anew() -> None:
    acquits(g2_stale_commits.check, history(joined(2, 1.0), joined(1, 2.0), commit(5, 3.0, epoch=1)))


def test_g2_accuses_a_consumer_only_when_it_has_given_the_partition_up_for_certain() -> None:
    def told(epoch: int, s: float, *partitions: int) -> Joined:
        assignment = tuple(("t", partition) for partition in partitions)
        return joined(epoch, s, protocol="consumer", assignment=assignment)

    late = commit(5, 9.0, epoch=1, member="m1")
    acquits(g2_stale_commits.check, history(told(1, 1.0, 0), told(2, 2.0, 0), told(3, 3.0, 0), late))
    acquits(g2_stale_commits.check, history(told(1, 1.0, 0), told(2, 2.0), late))
    acquits(g2_stale_commits.check, history(told(1, 1.0, 0), told(1, 2.0), told(2, 3.0), late))
    given_up = history(told(1, 1.0, 0), told(2, 2.0), told(3, 3.0), late)
    accuses(g2_stale_commits.check, given_up, "with member epoch 1, though it had been told epoch 2 without .* epoch 3")


# --- G3


def owns(member: str, from_s: float, to_s: float | None, **others: Any) -> Ownership:
    fields: dict[str, Any] = {"group": "g", "topic": "t", "partition": 0}
    return Ownership(member=member, from_s=from_s, to_s=to_s, **(fields | others))


def test_g3_acquits_owners_that_follow_each_other() -> None:
    turns = [owns("m1", 0.0, 1.0), owns("m2", 1.0, 2.0), owns("m2", 1.5, None), owns("m1", 0.0, None, partition=1)]
    acquits(g3_one_owner.check, history(ownerships=turns))
    static = [owns("m1", 0.0, 2.0, instance="i"), owns("m2", 1.0, None, instance="i")]
    acquits(g3_one_owner.check, history(ownerships=static))


def test_g3_accuses_two_owners_at_a_time() -> None:
    two = [owns("m1", 0.0, None), owns("m2", 1.0, 2.0)]
    accuses(
        g3_one_owner.check, history(ownerships=two), "m2 owned t-0 in group g from 1.000 s to 2.000 s, and m1 .*end"
    )
    hidden = [owns("m1", 0.0, 9.0), owns("m1", 1.0, 2.0), owns("m2", 3.0, 4.0)]
    accuses(g3_one_owner.check, history(ownerships=hidden), "m2 owned t-0")


# --- G4


def test_g4_acquits_disjoint_parts_of_one_leader() -> None:
    parts = joined(1, 1.0, "m1", assignment=(("t", 0),), leader="m1"), joined(1, 1.1, "m2", leader="m1")
    acquits(g4_one_plan.check, history(*parts, joined(2, 2.0, "m2", assignment=(("t", 0),), leader="m2")))
    static = joined(1, 3.0, "m3", assignment=(("t", 0),), instance="i")
    acquits(g4_one_plan.check, history(static, joined(1, 4.0, "m4", assignment=(("t", 0),), instance="i")))
    new_kind = joined(1, 1.0, "m2", assignment=(("t", 0),), leader="m2", protocol="consumer")
    acquits(g4_one_plan.check, history(*parts, new_kind))


def test_g4_accuses_a_partition_with_two_members_or_a_generation_with_two_leaders() -> None:
    one = joined(1, 1.0, "m1", assignment=(("t", 0),), leader="m1")
    both = history(one, joined(1, 2.0, "m2", assignment=(("t", 0),), leader="m1"))
    accuses(g4_one_plan.check, both, r"t-0 was given to m2 \(generation 1 of group g, at 2.000 s\) and to m1")
    led = history(one, joined(1, 2.0, "m2", leader="m2"))
    accuses(g4_one_plan.check, led, "m2 .* heard that m2 leads it, and m1 .* that m1 does")


# --- G5


def restart(before: dict[str, GroupState], after: dict[str, GroupState]) -> Any:
    return history(groups_before_restart=before, groups_after_restart=after)


def test_g5_acquits_groups_that_are_as_they_were() -> None:
    stable = state(("t", 0, 5), kind="Stable", members=("m1", "m2"))
    acquits(g5_restart.check, restart(stable, state(("t", 0, 5), kind="Stable", members=("m2", "m1"))))
    acquits(g5_restart.check, restart(state(kind="PreparingRebalance", members=("m1",)), state(kind="Stable")))
    acquits(g5_restart.check, restart(state(), {}))


def test_g5_accuses_groups_that_lost_offsets_members_or_everything() -> None:
    before = state(("t", 0, 5), kind="Stable", members=("m1",))
    other = state(("t", 0, 4), kind="Stable", members=("m1",))
    accuses(g5_restart.check, restart(before, other), "group g had committed offset 5 for t-0 before .* and 4 after")
    members = state(("t", 0, 5), kind="Stable", members=("m2",))
    accuses(g5_restart.check, restart(before, members), r"members \['m1'\] before the restart, and \['m2'\] after it")
    empty = state(("t", 0, 5), members=("m1",))
    accuses(g5_restart.check, restart(before, empty), "group g was Stable before the restart, and Empty after it")
    accuses(g5_restart.check, restart(before, {}), "group g was gone after the restart, with 1 committed offsets")
