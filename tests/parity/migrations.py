"""Groups that could change their kind, under one ``group.consumer.migration.policy`` after the other.

What is asked is the same for every policy: the answers show what it lets happen. Those who come the old way are ``k``
and ``l``, those who come the new way (KIP-848) are ``M`` and ``member-x``.
"""

from __future__ import annotations

from typing import Any

from parity import asking_groups as classic
from parity.asking_consumers import AT_ONCE, M, beat, described, group, own_settings, owning, ready, settled
from parity.asking_groups import all_offsets, commit, enter, offsets, protocols
from parity.notation import ALL, Ask, Script, Step, answer, topic

POLICY = "group.consumer.migration.policy"
ENOUGH_MS = 3_000
"""Short where it is waited for, long enough for the steps before."""


def settings(policy: str) -> dict[str, str]:
    return {
        **AT_ONCE,
        "group.consumer.min.session.timeout.ms": "100",
        "group.consumer.min.heartbeat.interval.ms": "50",
        POLICY: policy,
    }


def both_ways(label: str) -> list[Step]:
    """The group described as what it may be: one of the two answers that it is not."""
    return [
        described(f"{label}, the new way", versions=ALL),
        classic.described(f"{label}, the old way", versions=ALL),
    ]


def enters(member: str = "k", **options: Any) -> list[Step]:
    return enter(member, protocols=protocols("range"), **options)


def joins(label: str, member: str, *owned: int, **options: Any) -> Ask:
    """By somebody who has these partitions of ``t``."""
    return classic.join(label, member, protocols=protocols("range", metadata=classic.owns("${t}", *owned)), **options)


def syncs(label: str, member: str, generation: int, *partitions: int, **options: Any) -> Ask:
    """Should it lead, it gives itself these partitions of ``t``."""
    given = [{"member_id": member, "assignment": classic.assignment("${t}", *partitions)}]
    return classic.sync(label, member, generation, assignments=given, **options)


def classic_group() -> list[Step]:
    """Of ``k`` alone, which has both partitions of ``t`` and has committed."""
    return [
        topic("t", partitions=2),
        *group("t"),
        *enters(),
        syncs("k syncs", "${k}", 1, 0, 1),
        commit("k commits", "${k}", 1),
    ]


def mixed_group() -> list[Step]:
    """Of ``m`` and ``k``, who have one partition each; of ``m`` alone where that must not be."""
    return [
        *ready(),
        commit("m commits", M, 2),
        *enters(),
        classic.sync("k syncs", "${k}", 3),
        beat("m gives up one", M, 2, topic_partitions=owning(0)),
        classic.beat("k is told", "${k}", 3),
        joins("k joins again", "${k}"),
        classic.sync("k syncs again", "${k}", 3),
    ]


def without_m(said: Any) -> bool:
    return all(member.member_id != M for member in said.groups[0].members)


SCRIPTS = [
    Script(
        "a new member comes to a classic group",
        [
            *classic_group(),
            beat("m comes", versions=ALL),
            *both_ways("when m has come"),
            classic.beat("k's heartbeat", "${k}", 1, versions=ALL),
            commit("k commits again", "${k}", 1, versions=ALL),
            classic.sync("k syncs once more", "${k}", 1, versions=ALL),
            joins("k joins again", "${k}", 0),
            syncs("k syncs again", "${k}", 2, 0, 1),
            beat("m's heartbeat", M, 2, topic_partitions=[], versions=ALL),
            *both_ways("when k has joined again"),
            commit("k commits for the third time", "${k}", 2, versions=ALL),
            beat("m goes", M, -1),
            *both_ways("when m has gone"),
            classic.beat("k's heartbeat when m has gone", "${k}", 2, versions=ALL),
            joins("k joins without m", "${k}", 0),
            syncs("k syncs without m", "${k}", 3, 0, 1),
            *both_ways("when k is alone"),
            all_offsets("the offsets"),
            classic.leave("k leaves", "${k}"),
            *both_ways("when nobody is there"),
            beat("m comes when nobody is there"),
            *both_ways("when m is alone"),
            offsets("the offsets in the end", versions=ALL),
        ],
    ),
    Script(
        "a classic member comes to a consumer group",
        [
            *mixed_group(),
            *both_ways("when k has come"),
            commit("k commits", "${k}", 3, versions=ALL),
            beat("m goes", M, -1),
            *both_ways("when m has gone"),
            classic.beat("k's heartbeat when m has gone", "${k}", 3, versions=ALL),
            commit("k commits without m", "${k}", 3, versions=ALL),
            classic.sync("k syncs once more", "${k}", 3, versions=ALL),
            joins("k joins without m", "${k}", 1),
            syncs("k syncs without m", "${k}", 4, 0, 1),
            *both_ways("when k is alone"),
            all_offsets("the offsets"),
            beat("m comes again"),
            *both_ways("when m has come again"),
            offsets("the offsets in the end", versions=ALL),
        ],
    ),
    Script(
        "the last new member is put out",
        [
            *mixed_group(),
            classic.leave("m is put out", M),
            *both_ways("when m is out"),
            classic.beat("k's heartbeat when m has gone", "${k}", 3, versions=ALL),
            beat("m's heartbeat", M, 3, versions=ALL),
            offsets("the offsets", versions=ALL),
        ],
    ),
    Script(
        "the last new member is silent",
        [
            *own_settings({"consumer.session.timeout.ms": str(ENOUGH_MS), "consumer.heartbeat.interval.ms": "50"}),
            topic("t", partitions=2),
            *group("t"),
            *settled(),
            *enters(),
            classic.sync("k syncs", "${k}", 3),
            described("m is gone", until=without_m),
            *both_ways("when m is gone"),
            classic.beat("k's heartbeat", "${k}", 3, versions=ALL),
            joins("k joins again", "${k}"),
            syncs("k syncs again", "${k}", 4, 0, 1),
            *both_ways("when k has joined again"),
        ],
    ),
    Script(
        "the last new member, an instance, comes back the old way",
        [
            topic("t", partitions=2),
            *group("t"),
            beat("i comes", instance_id="i"),
            beat("i has them", M, 2, instance_id="i", topic_partitions=owning(0, 1)),
            *enters(),
            classic.sync("k syncs", "${k}", 3),
            joins("i comes the old way", "", group_instance_id="i", capture={"i": "member_id"}),
            *both_ways("when i has come the old way"),
            classic.beat("k's heartbeat", "${k}", 3),
            classic.beat("i's heartbeat", "${i}", 3, group_instance_id="i"),
            syncs("i syncs", "${i}", 3, 0, 1, group_instance_id="i"),
            beat("i's heartbeat under the id before", M, 2, instance_id="i", versions=ALL),
            beat("i comes the new way again", "member-x", instance_id="i", versions=ALL),
            *both_ways("when i has come the new way again"),
            classic.beat("i's heartbeat under the old id", "${i}", 3, group_instance_id="i"),
        ],
    ),
    Script(
        "an instance of another subscription comes back the old way",
        [
            topic("t", partitions=2),
            topic("u"),
            *group("t", "u"),
            beat("i comes", instance_id="i"),
            *enters(),
            classic.sync("k syncs", "${k}", 3),
            classic.join(
                "i comes the old way",
                group_instance_id="i",
                protocols=protocols("range", metadata=classic.subscription("${u}")),
                capture={"i": "member_id"},
            ),
            *both_ways("when i has come the old way"),
            classic.beat("k's heartbeat", "${k}", 3),
        ],
    ),
    Script(
        "a classic instance comes back the new way",
        [
            topic("t", partitions=2),
            *group("t"),
            joins("i comes", "", group_instance_id="i", capture={"i": "member_id"}),
            syncs("i syncs", "${i}", 1, 0, 1, group_instance_id="i"),
            commit("i commits", "${i}", 1, group_instance_id="i"),
            beat("i comes the new way", instance_id="i", versions=[1]),
            *both_ways("when i has come the new way"),
            classic.beat("i's heartbeat under the id before", "${i}", 1, group_instance_id="i", versions=[4]),
            commit("i commits under the id before", "${i}", 1, group_instance_id="i", versions=ALL),
            beat("i's heartbeat", M, 2, instance_id="i", versions=ALL),
            beat("i goes for a while", M, -2, instance_id="i"),
            joins("i comes the old way", "", group_instance_id="i", capture={"j": "member_id"}),
            *both_ways("when i has come the old way"),
            offsets("the offsets", versions=ALL),
        ],
    ),
    Script(
        "a new member comes while a classic group waits for its leader",
        [
            topic("t", partitions=2),
            *group("t"),
            *enters(),
            # The uniform assignor of Kafka goes by the hash of k's id, which is another one each time.
            beat("m comes", server_assignor="range", versions=ALL),
            syncs("k syncs", "${k}", 1, 0, 1),
            *both_ways("when k has synced"),
            classic.beat("k's heartbeat", "${k}", 1, versions=ALL),
        ],
    ),
    Script(
        "a new member comes while a classic group waits for its members",
        [
            *classic_group(),
            *enters("l", connection="l", parked="l is in"),
            classic.described("l waits", state="PreparingRebalance", shown=False),
            beat("m comes", server_assignor="range"),
            joins("k joins again", "${k}", 0, 1),
            answer("l is in", unordered=["members"]),
            classic.beat("l's heartbeat", "${l}", 1),
            classic.beat("l's heartbeat, a generation later", "${l}", 2),
            offsets("the offsets"),
        ],
    ),
    Script(
        "groups of others than consumers",
        [
            topic("t", partitions=2),
            *group("t"),
            *enter("w", protocol_type="connect", protocols=protocols("eager", metadata=b"worker")),
            beat("m comes to workers", versions=ALL),
            classic.described("workers", versions=ALL),
            classic.leave("w leaves", "${w}"),
            beat("m comes when they have gone"),
            classic.join("a worker comes to m", protocol_type="connect", versions=ALL),
            *both_ways("when a worker has come"),
        ],
    ),
    Script(
        "empty groups change their kind",
        [
            topic("t"),
            *group("t"),
            commit("offsets from outside"),
            *settled(1),
            commit("m commits", M, 2, rows=[{"partition_index": 0, "committed_offset": 6}]),
            beat("m goes", M, -1),
            *both_ways("an empty consumer group"),
            *enters(),
            *both_ways("a classic group"),
            syncs("k syncs", "${k}", 1, 0),
            offsets("the offsets"),
            classic.leave("k leaves", "${k}"),
            *both_ways("an empty classic group"),
            beat("m comes again"),
            *both_ways("a consumer group again"),
            offsets("the offsets in the end"),
        ],
    ),
]
