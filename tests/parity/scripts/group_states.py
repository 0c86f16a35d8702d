"""Classic groups: every call in every state of a group."""

from __future__ import annotations

from collections.abc import Sequence

from parity.asking_groups import (
    AT_ONCE,
    all_offsets,
    beat,
    commit,
    delete,
    described,
    drop,
    enter,
    group,
    join,
    leave,
    offsets,
    protocols,
    second,
    stable,
    sync,
)
from parity.notation import ALL, Ask, Script, Step, answer, topic

SETTINGS = AT_ONCE

NOBODY = "nobody-here"

EVERYTHING: list[Step] = [
    # Each call at all of its versions; none of them changes the group.
    described("described", versions=ALL, include_authorized_operations=True),
    beat("a heartbeat of nobody", NOBODY, versions=ALL),
    beat("a heartbeat without a name", "", versions=ALL),
    beat("a heartbeat as a stranger's instance", NOBODY, group_instance_id="stranger", versions=range(3, 5)),
    sync("a sync of nobody", NOBODY, versions=ALL),
    sync("a sync without a name", "", versions=ALL),
    sync("a sync as a stranger's instance", NOBODY, group_instance_id="stranger", versions=range(3, 6)),
    join("a join under a name never given", NOBODY, versions=ALL),
    join("a join under another type", protocol_type="connect", versions=ALL),
    join("a join with other protocols", protocols=protocols("other", metadata=b""), versions=range(9, 10)),
    join("a join without protocols", protocols=[], versions=ALL),
    join("a join without a type", protocol_type="", versions=ALL),
    join("a session too short", session_timeout_ms=1, versions=ALL),
    join("a session too long", session_timeout_ms=1_800_001, versions=ALL),
    leave("nobody leaves", NOBODY, versions=ALL),
    leave("a stranger's instance leaves", "", "stranger", versions=range(3, 6)),
    commit("a commit of nobody", NOBODY, 1, versions=ALL),
    commit("a commit of nobody, without a generation", NOBODY, -1, versions=ALL),
    commit("a commit of a generation alone", "", 1, versions=ALL),
    commit("a commit as a stranger's instance", NOBODY, 1, group_instance_id="stranger", versions=range(7, 11)),
    offsets("offsets of nobody", more={"member_id": NOBODY, "member_epoch": 1}, versions=ALL),
    all_offsets("all offsets"),
]

OF_M: list[Step] = [
    # Of the member ``m``, who is in the group at its first generation or was.
    beat("m's heartbeat", versions=ALL),
    beat("m's heartbeat of another generation", generation=7, versions=ALL),
    beat("m's heartbeat as an instance that it is not", group_instance_id="stranger", versions=range(3, 5)),
    sync("m's sync of another generation", generation=7, versions=ALL),
    sync("m's sync by another type", protocol_type="connect", versions=range(5, 6)),
    sync("m's sync by another protocol", protocol_name="other", versions=range(5, 6)),
    commit("m commits", "${m}", 1, versions=ALL),
    commit("m commits in another generation", "${m}", 7, versions=ALL),
    commit("m commits without a generation", "${m}", -1, versions=ALL),
    commit("one from outside commits", versions=ALL),
    join("m joins under another type", "${m}", protocol_type="connect", versions=ALL),
    drop("an offset deleted"),
    drop("an offset of another topic deleted", to="${u}"),
    delete("the group deleted", versions=ALL),
]

WELCOME = {"a join under another type", "a join with other protocols", "m joins under another type"}
"""In a group without members."""


def unwelcome(*steps: Step) -> list[Step]:
    return [step for step in steps if not isinstance(step, Ask) or step.label not in WELCOME]


def in_state(name: str, *steps: Step, last: Sequence[Step] = ()) -> Script:
    asked = [*steps, *EVERYTHING, *OF_M, *last]
    return Script(name, [topic("t", partitions=2), topic("u"), *group(), *asked])


SCRIPTS = [
    Script(
        "in a group that is not there",
        [
            topic("t", partitions=2),
            *group(),
            *unwelcome(*EVERYTHING),
            drop("an offset deleted"),
            delete("deleted", versions=ALL),
        ],
    ),
    Script(
        "in a group that has only offsets",
        [
            topic("t", partitions=2),
            *group(),
            commit("from outside"),
            *unwelcome(*EVERYTHING),
            drop("an offset deleted"),
            delete("deleted", versions=[0]),
            described("afterwards", versions=ALL),
        ],
    ),
    in_state(
        "in a stable group of one",
        *stable(),
        last=[
            leave("m leaves"),
            described("m has left", versions=ALL),
            delete("it is deleted"),
            described("it is gone", versions=ALL),
        ],
    ),
    in_state("in a group that is completing", *enter("m"), last=[sync("m syncs", given=["${m}"]), leave()]),
    in_state(
        "in a group that is preparing",
        *stable(),
        *second(),
        last=[
            join("m joins again", "${m}"),
            answer("n is in"),
            sync("m syncs again", generation=2, given=["${m}", "${n}"]),
            sync("n syncs", "${n}", 2, connection="n"),
            described("the second generation", versions=ALL),
        ],
    ),
    Script(
        "in a group that everybody has left",
        [
            topic("t", partitions=2),
            topic("u"),
            *group(),
            *stable(),
            commit("m commits before", "${m}", 1),
            leave("m leaves"),
            *unwelcome(*EVERYTHING),
            *unwelcome(*OF_M),
        ],
    ),
]
