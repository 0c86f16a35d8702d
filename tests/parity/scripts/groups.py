"""Classic groups as a whole: their coordinator, what they are called, how they are described, listed and deleted."""

from __future__ import annotations

from parity.asking_groups import AT_ONCE, beat, commit, delete, enter, group, join, leave, listed, offsets, sync
from parity.notation import ALL, Ask, Script, ask, topic

SETTINGS = AT_ONCE

SCRIPTS = [
    Script(
        "the coordinator",
        [
            *group(),
            ask("FindCoordinator", "of a group", versions=ALL, key="${g}", coordinator_keys=["${g}"]),
            ask("FindCoordinator", "of several", versions=range(4, 7), coordinator_keys=["${g}", "x", "${g}", "y"]),
            ask("FindCoordinator", "of none", versions=range(4, 7), coordinator_keys=[]),
            ask("FindCoordinator", "of a group without a name", versions=ALL, key="", coordinator_keys=[""]),
            ask(
                "FindCoordinator", "of another kind", versions=range(1, 7), key="x", key_type=9, coordinator_keys=["x"]
            ),
            ask("FindCoordinator", "of a share", versions=range(1, 7), key="x", key_type=2, coordinator_keys=["x"]),
            ask("FindCoordinator", "of a negative kind", versions=range(1, 7), key_type=-1, coordinator_keys=["x"]),
        ],
    ),
    Script(
        "groups without a name",
        [
            topic(),
            *group(),
            *[
                Ask(**{**each.__dict__, "fields": {**each.fields, "group_id": ""}, "versions": ALL})
                for each in (join(), sync(member="x"), beat(member="x"), leave(member="x"))
            ],
            ask("DescribeGroups", "described", versions=ALL, groups=[""]),
            delete("deleted", "", versions=ALL),
            ask("OffsetDelete", "offsets deleted", group_id="", topics=[]),
        ],
    ),
    Script(
        "groups described, listed and deleted",
        fresh=True,
        steps=[
            topic(),
            *group("g"),
            *group("h"),
            commit("offsets only"),
            *enter("m", of="h"),
            sync("m syncs", of="h", given=["${m}"]),
            ask(
                "DescribeGroups",
                "all kinds",
                versions=ALL,
                groups=["${g}", "${h}", "nobody", "${g}"],
                unordered=["groups"],
                include_authorized_operations=True,
            ),
            ask("DescribeGroups", "none", versions=ALL, groups=[]),
            *[
                listed(states, kinds)
                for states, kinds in (
                    (["Stable"], []),
                    (["stable", "nonsense"], []),
                    (["nonsense"], []),
                    ([" Stable "], []),
                    ([], ["consumer"]),
                    ([], ["CLASSIC", "Share"]),
                    ([], ["nonsense"]),
                    (["Empty"], ["classic"]),
                )
            ],
            delete("several", "${g}", "${h}", "nobody", versions=[2]),
            delete("again, one twice", "${g}", "${g}", "", versions=ALL),
            ask("DeleteGroups", "none", versions=ALL, groups_names=[]),
            leave("m leaves", of="h"),
            delete("one twice", "${h}", "${h}", versions=[2]),
            ask("DescribeGroups", "afterwards", versions=ALL, groups=["${g}", "${h}"], unordered=["groups"]),
            offsets("their offsets"),
        ],
    ),
    Script(
        "all groups listed",
        fresh=True,
        steps=[
            topic(),
            *group(),
            *group("h"),
            ask("ListGroups", "none", versions=ALL, until=lambda answer: answer.error_code == 0),
            commit("offsets only"),
            *enter("m", of="h"),
            ask("ListGroups", "two", versions=ALL, unordered=["groups"]),
            ask("ListGroups", "states", versions=range(4, 6), states_filter=["CompletingRebalance"]),
        ],
    ),
]
