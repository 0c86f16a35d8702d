"""G5: a restart changes nothing in a group.

Each group has the same committed offsets before and after the restart. If it was at rest (Stable or Empty), it has the
same state and members, too.

Exempt   groups in the middle of a rebalance, which begins anew
         an empty group without offsets: it may be forgotten.
Both states have to be told within the members' session timeout, while no client acts.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.history import GroupState, History

AT_REST = ("Stable", "Empty")


def check(history: History) -> Iterator[str]:
    for group, before in history.groups_before_restart.items():
        after = history.groups_after_restart.get(group)
        if after is None:
            if before.offsets or before.members:
                yield (
                    f"group {group} was gone after the restart, with {len(before.offsets)} committed offsets and "
                    f"the members {list(before.members)}"
                )
            continue
        yield from _offsets(before, after)
        if before.state not in AT_REST:
            continue
        if before.state != after.state:
            yield f"group {group} was {before.state} before the restart, and {after.state} after it"
        if sorted(before.members) != sorted(after.members):
            yield (
                f"group {group} had the members {sorted(before.members)} before the restart, and "
                f"{sorted(after.members)} after it"
            )


def _offsets(before: GroupState, after: GroupState) -> Iterator[str]:
    old = {(topic, partition): offset for topic, partition, offset in before.offsets}
    new = {(topic, partition): offset for topic, partition, offset in after.offsets}
    for topic, partition in sorted(old.keys() | new.keys()):
        one, other = old.get((topic, partition), -1), new.get((topic, partition), -1)
        if one != other:
            yield (
                f"group {before.group} had committed offset {one} for {topic}-{partition} before the restart, and "
                f"{other} after it"
            )
