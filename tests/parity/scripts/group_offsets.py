"""Committed offsets: written, read and deleted, by members and from outside."""

from __future__ import annotations

from parity.asking_groups import (
    AT_ONCE,
    all_offsets,
    commit,
    described,
    drop,
    enter,
    group,
    leave,
    offsets,
    protocols,
    subscription,
    sync,
)
from parity.notation import ALL, Script, ask, topic

SETTINGS = AT_ONCE

NO_TOPIC = b"\x07" * 16


def row(index: int = 0, offset: int = 5, metadata: str | None = "note", epoch: int = -1) -> dict[str, object]:
    return {
        "partition_index": index,
        "committed_offset": offset,
        "committed_metadata": metadata,
        "committed_leader_epoch": epoch,
    }


SCRIPTS = [
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
            commit("metadata of more units of UTF-16 than may be", rows=[row(0, 4, "\U0001f600" * 2049)]),
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
]
