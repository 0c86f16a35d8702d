"""Classic groups and committed offsets: every call in every state of a group."""

from __future__ import annotations

from collections.abc import Sequence

from parity.asking_groups import (
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
    subscription,
    sync,
)
from parity.notation import ALL, Ask, Script, Step, answer, ask, topic

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}

NOBODY = "nobody-here"
NO_TOPIC = b"\x07" * 16


def row(index: int = 0, offset: int = 5, metadata: str | None = "note", epoch: int = -1) -> dict[str, object]:
    return {
        "partition_index": index,
        "committed_offset": offset,
        "committed_metadata": metadata,
        "committed_leader_epoch": epoch,
    }


def stable(instance: str | None = None) -> list[Step]:
    """A group of one member, ``m``, in its first generation."""
    if instance is None:
        return [*enter("m"), sync("m syncs", given=["${m}"])]
    first = join("m joins", group_instance_id=instance, capture={"m": "member_id"})
    return [first, sync("m syncs", given=["${m}"], group_instance_id=instance)]


def second(member: str = "n", **options: object) -> list[Step]:
    """Another, whose coming the group waits for ``m`` to notice."""
    return [
        *enter(member, connection=member, parked=f"{member} is in", **options),
        described(f"{member} waits", state="PreparingRebalance"),
    ]


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
        "offsets of a group without a name",
        [
            topic(),
            *group(),
            commit("of a member", "x", 1, group_id="", versions=ALL),
            commit("from outside", group_id="", versions=ALL),
            ask(
                "OffsetFetch",
                "fetched",
                versions=ALL,
                group_id="",
                topics=[{"name": "${t}", "partition_indexes": [0]}],
                groups=[
                    {"group_id": "", "topics": [{"name": "${t}", "topic_id": "${t.id}", "partition_indexes": [0]}]}
                ],
            ),
        ],
    ),
    Script(
        "offsets committed from outside",
        each="OffsetCommit",
        steps=[
            topic(partitions=3),
            *group(),
            commit("the first"),
            offsets("fetched"),
            commit("several", rows=[row(0, 7), row(1, 8, None), row(2, 9, "", 0)]),
            commit("an offset that is smaller", rows=[row(0, 1)]),
            commit("an offset of a record that is not there", rows=[row(1, 1 << 60)]),
            commit("a negative offset", rows=[row(2, -1)]),
            commit("a very negative offset", rows=[row(2, -9)]),
            commit("an epoch that nobody has seen", rows=[row(1, 4, "far", 99)]),
            commit("a partition that is not there", rows=[row(0, 3), row(3), row(-1)]),
            commit("metadata as large as may be", rows=[row(0, 3, "x" * 4096)]),
            commit("metadata too large", rows=[row(0, 4, "x" * 4097), row(1, 44)]),
            commit("metadata of more bytes than letters", rows=[row(0, 4, "\u00e9" * 2049)]),
            commit("a partition twice", rows=[row(1, 21), row(1, 22)]),
            commit("no partition", rows=[]),
            commit("no topic", topics=[]),
            commit("to a time of its own", retention_time_ms=1_000, rows=[row(0, 6)]),
            ask(
                "OffsetCommit",
                "a topic that is not there",
                group_id="${g}",
                generation_id_or_member_epoch=-1,
                topics=[
                    {"name": "nothing", "topic_id": NO_TOPIC, "partitions": [row()]},
                    {"name": "${t}", "topic_id": "${t.id}", "partitions": [row(0, 11)]},
                ],
            ),
            ask(
                "OffsetCommit",
                "a topic twice",
                group_id="${g}",
                generation_id_or_member_epoch=-1,
                topics=[{"name": "${t}", "topic_id": "${t.id}", "partitions": [row(1, each)]} for each in (31, 32)],
            ),
            commit("with an instance", group_instance_id=None),
            offsets("fetched in the end", [0, 1, 2, 3, -1]),
            described("described in the end"),
        ],
    ),
    Script(
        "commits as an instance without a member",
        [
            topic(),
            *group(),
            commit("of an instance", group_instance_id="i", versions=range(7, 11)),
            commit("of a generation that is low", generation=-2, versions=ALL),
            offsets("fetched"),
        ],
    ),
    Script(
        "offsets fetched",
        [
            topic(partitions=3),
            topic("u"),
            *group(),
            *group("h"),
            offsets("of a group that is not there", [0, 1], versions=ALL),
            all_offsets("all of a group that is not there"),
            commit("committed", rows=[row(0, 5, "a", 0), row(2, 6, "")]),
            commit("committed in another topic", to="u", rows=[row(0, 1)]),
            commit("committed by another", of="h", rows=[row(0, 50)]),
            offsets("all partitions and more", [0, 1, 2, 3, -1], versions=ALL),
            offsets("one twice", [0, 0], versions=ALL),
            offsets("no partition", [], versions=ALL),
            offsets("only what is certain", [0, 1], require_stable=True, versions=range(7, 11)),
            all_offsets("all"),
            ask("OffsetFetch", "of no topic", versions=ALL, group_id="${g}", topics=[], groups=[{"group_id": "${g}"}]),
            ask(
                "OffsetFetch",
                "a topic that is not there",
                versions=ALL,
                group_id="${g}",
                topics=[{"name": "nothing", "partition_indexes": [0]}],
                groups=[
                    {
                        "group_id": "${g}",
                        "topics": [
                            {"name": "nothing", "topic_id": NO_TOPIC, "partition_indexes": [0, 1]},
                            {"name": "${t}", "topic_id": "${t.id}", "partition_indexes": [0]},
                        ],
                    }
                ],
            ),
            ask(
                "OffsetFetch",
                "of several groups",
                versions=range(8, 11),
                groups=[
                    {
                        "group_id": each,
                        "topics": [{"name": "${t}", "topic_id": "${t.id}", "partition_indexes": [0, 2]}],
                    }
                    for each in ("${g}", "${h}", "nobody", "${g}")
                ],
            ),
            ask("OffsetFetch", "of no group", versions=range(8, 11), groups=[]),
            offsets("a member that is not there", more={"member_id": "x", "member_epoch": 3}, versions=ALL),
            offsets("an epoch alone", more={"member_id": None, "member_epoch": 3}, versions=ALL),
        ],
    ),
    Script(
        "offsets deleted",
        [
            topic(partitions=3),
            topic("u"),
            *group(),
            drop("of a group that is not there"),
            commit("committed", rows=[row(0), row(1), row(2)]),
            drop("one, and one that is not there", [0, 7]),
            drop("the same again"),
            drop("of a topic that has none", to="${u}"),
            drop("of a topic that is not there", to="nothing"),
            drop("none", []),
            offsets("what is left", [0, 1, 2]),
            drop("the others", [1, 2]),
            offsets("nothing is left", [0, 1, 2]),
            described("the group afterwards"),
        ],
    ),
    Script(
        "offsets deleted of a group with members",
        [
            topic(partitions=3),
            topic("u"),
            *group(),
            *enter("m", protocols=protocols("range", metadata=subscription("${t}"))),
            sync("m syncs", given=["${m}"]),
            commit("committed", "${m}", 1),
            commit("committed in another topic", "${m}", 1, to="u"),
            drop("of a topic that it reads"),
            drop("of another", to="${u}"),
            offsets("what is left"),
            offsets("what is left of the other", to="u"),
            leave("m leaves"),
            drop("of a topic that it read"),
        ],
    ),
    Script(
        "offsets deleted of a group that is not of consumers",
        [
            topic(),
            *group(),
            *enter("m", protocol_type="connect"),
            sync("m syncs", given=["${m}"], protocol_type="connect"),
            commit("committed", "${m}", 1),
            drop("with members"),
            leave("m leaves"),
            drop("without"),
        ],
    ),
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
    Script(
        "a first member by every JoinGroup",
        each="JoinGroup",
        steps=[
            *group(),
            join("the first time", capture={"m": "member_id"}),
            described("after the first time"),
            join("with an id", "${m}"),
            join("again", "${m}"),
            described("before the sync"),
            sync("syncs", given=["${m}"]),
            described("after the sync"),
            join("the leader once more", "${m}"),
            sync("syncs once more", generation=2, given=["${m}"]),
            join("with several protocols", "${m}", protocols=protocols("one", "range", "two", metadata=b"x")),
            sync("syncs for the third time", generation=3, given=["${m}"], protocol_name="one"),
            leave("leaves"),
            join("after it left", "${m}"),
        ],
    ),
    Script(
        "a second member by the first versions of JoinGroup",
        each="JoinGroup",
        only=range(4),
        steps=[
            *group(),
            join("m joins", capture={"m": "member_id"}),
            sync("m syncs", given=["${m}"]),
            join("n", connection="n", parked="n is in"),
            described("n waits", state="PreparingRebalance"),
            beat("m notices"),
            join("m joins again", "${m}"),
            answer("n is in", capture={"n": "member_id"}),
            beat("n's heartbeat before the sync", "${n}", 2),
            sync("m syncs again", generation=2, given=["${m}", "${n}"]),
            sync("n syncs", "${n}", 2, connection="n"),
            described("both"),
        ],
    ),
    *[
        Script(
            f"two members by every {api}",
            each=api,
            steps=[
                *group(),
                *stable(),
                *second(),
                beat("m notices"),
                sync("m syncs too late"),
                join("m joins again", "${m}"),
                answer("n is in"),
                beat("a heartbeat before the sync", generation=2),
                sync("n", "${n}", 2, connection="n", parked="n has synced"),
                sync("m syncs again", generation=2, given=["${m}", "${n}"]),
                answer("n has synced"),
                beat("a heartbeat", "${n}", 2),
                sync("n asks again", "${n}", 2, connection="n"),
                described("both"),
                join("a follower that says the same", "${n}", connection="n"),
                leave("n leaves", "${n}"),
                beat("m notices that it left", generation=2),
                join("m joins for the third time", "${m}"),
                described("alone again"),
            ],
        )
        for api in ("SyncGroup", "Heartbeat", "LeaveGroup")
    ],
    Script(
        "protocols that two members have in common",
        [
            *group(),
            *enter("m", protocols=protocols("a", "b", "c", metadata=b"m")),
            sync("m syncs", given=["${m}"], protocol_name="a"),
            join("none in common", protocols=protocols("z", metadata=b"")),
            *second(protocols=protocols("c", "b", metadata=b"n")),
            join("m joins again", "${m}", protocols=protocols("a", "b", "c", metadata=b"m2")),
            answer("n is in"),
            sync("by a protocol that was not chosen", generation=2, protocol_name="c"),
            sync("m syncs again", generation=2, given=["${m}", "${n}"], protocol_name="b"),
            described("both", versions=ALL),
        ],
    ),
    Script(
        "static members",
        [
            topic(),
            *group(),
            join("i comes", group_instance_id="i", capture={"m": "member_id"}),
            sync("i syncs", given=["${m}"], group_instance_id="i"),
            described("described", versions=ALL),
            beat("its heartbeat", group_instance_id="i", versions=range(3, 5)),
            beat("its heartbeat without the instance", versions=ALL),
            beat("its heartbeat under another id", "x", group_instance_id="i", versions=range(3, 5)),
            sync("its sync under another id", "x", group_instance_id="i", versions=range(3, 6)),
            commit("its commit", "${m}", 1, group_instance_id="i", versions=range(7, 11)),
            commit("its commit under another id", "x", 1, group_instance_id="i", versions=range(7, 11)),
            join("its join under another id", "x", group_instance_id="i", versions=range(5, 10)),
            join("it comes again", group_instance_id="i", capture={"again": "member_id"}),
            beat("the one before is fenced", group_instance_id="i"),
            beat("the one before without its instance"),
            sync("it asks what it has", "${again}", group_instance_id="i"),
            join("an old version", group_instance_id="i", versions=[5], capture={"old": "member_id"}),
            join(
                "with something else to say",
                group_instance_id="i",
                protocols=protocols("range", metadata=b"new"),
                capture={"last": "member_id"},
            ),
            described("after all this"),
            sync("syncs", "${last}", 2, given=["${last}"], group_instance_id="i"),
            leave("under another id", "x", "i", versions=range(3, 6)),
            leave("by its instance", "", "i"),
            described("it left"),
        ],
    ),
    Script(
        "several leave at once",
        [
            *group(),
            join("i comes", group_instance_id="i", capture={"m": "member_id"}),
            sync("i syncs", given=["${m}"], group_instance_id="i"),
            *second(),
            join("i again", "${m}", group_instance_id="i"),
            answer("n is in"),
            sync("i syncs again", generation=2, given=["${m}", "${n}"], group_instance_id="i"),
            ask("LeaveGroup", "nobody", group_id="${g}", members=[], versions=range(3, 6)),
            ask(
                "LeaveGroup",
                "some",
                group_id="${g}",
                members=[
                    {"member_id": "", "group_instance_id": "i"},
                    {"member_id": "${n}"},
                    {"member_id": "${n}"},
                    {"member_id": "x"},
                    {"member_id": "", "group_instance_id": "j"},
                    {"member_id": ""},
                ],
            ),
            described("they left", versions=ALL),
        ],
    ),
    Script(
        "groups described, listed and deleted",
        [
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
                ask(
                    "ListGroups",
                    f"listed by state {states} and type {kinds}",
                    versions=[5],
                    states_filter=states,
                    types_filter=kinds,
                    unordered=["groups"],
                )
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
