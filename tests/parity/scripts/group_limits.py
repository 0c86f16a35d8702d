"""Groups that are full, members that are silent for too long, metadata that is too large, groups that keep their kind.

Who is to be silent for too long has a short time of his own, and no step asks anything of him before that is over.
"""

from __future__ import annotations

from typing import Any

from parity import asking_groups as classic
from parity import asking_transactions as transactions
from parity.asking_consumers import AT_ONCE, M, N, beat, described, group, own_settings, owning, ready, settled
from parity.asking_groups import commit, enter, offsets, protocols
from parity.notation import ALL, Ask, Script, Step, answer, ask, topic

SHORT_MS = 300
ENOUGH_MS = 3_000
"""Short where it is waited for, long enough for the step before."""

SETTINGS = {
    **AT_ONCE,
    **transactions.FEW_PARTITIONS,
    "group.max.size": "2",
    "group.min.session.timeout.ms": "100",
    "group.consumer.max.size": "2",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.migration.policy": "disabled",
    "offset.metadata.max.bytes": "8",
}
SHORT_SESSION = {"consumer.session.timeout.ms": str(SHORT_MS), "consumer.heartbeat.interval.ms": "50"}

EMOJI = "\U0001f600"
"""One character, two units of UTF-16, four bytes of UTF-8."""

NOTES = {"as long as may be": "12345678", "too long": "123456789", "of four emoji": EMOJI * 4, "of five": EMOJI * 5}


def noted(metadata: str) -> dict[str, Any]:
    return {"partition_index": 0, "committed_offset": 5, "committed_metadata": metadata}


def in_transaction(label: str, metadata: str) -> Ask:
    rows = [noted(metadata), {**noted("note"), "partition_index": 1}]
    topics = [{"name": "${t}", "partitions": rows}]
    return transactions.commit(label, topics=topics, versions=ALL)


def alone(answer: Any) -> bool:
    return len(answer.groups[0].members) == 1


def empty(answer: Any) -> bool:
    return bool(answer.groups[0].group_state == "Empty")


def waiting(members: int) -> Ask:
    return ask(
        "DescribeGroups",
        f"there are {members}",
        groups=["${g}"],
        until=lambda answer: len(answer.groups[0].members) == members,
        shown=False,
    )


def full() -> list[Step]:
    """A classic group of two, ``m`` and ``n``, in its second generation."""
    return [
        *classic.group(),
        *classic.stable(),
        *classic.second(),
        classic.join("m joins again", "${m}"),
        answer("n is in", unordered=["members"]),
        classic.sync("m syncs again", generation=2, given=["${m}", "${n}"]),
        classic.sync("n syncs", "${n}", 2, connection="n"),
    ]


SCRIPTS = [
    Script(
        "a classic group that is full",
        [
            *full(),
            classic.join("a third", versions=ALL),
            classic.join("a third with a name of its own", "third", versions=ALL),
            classic.join("a third as an instance", group_instance_id="i", versions=range(5, 10)),
            classic.described("two are there", versions=ALL),
            classic.leave("n leaves", "${n}"),
            classic.join("m joins for the third time", "${m}"),
            classic.described("m alone", versions=ALL),
            classic.join("a third when there is a place"),
        ],
    ),
    Script(
        "ids given to more than a classic group takes",
        [
            *classic.group(),
            *[classic.join(f"{each} is given an id", capture={each: "member_id"}) for each in ("a", "b", "c")],
            classic.join("a joins", "${a}", rebalance_timeout_ms=ENOUGH_MS),
            classic.join("b joins", "${b}", rebalance_timeout_ms=ENOUGH_MS, connection="b", parked="b is in"),
            classic.described("b waits", state="PreparingRebalance"),
            classic.join("c joins", "${c}", rebalance_timeout_ms=ENOUGH_MS, connection="c", parked="c is in"),
            waiting(3),
            classic.join("a joins again", "${a}", rebalance_timeout_ms=ENOUGH_MS),
            # Which of the two leads goes by the hash of their ids in Kafka: their answers are left unread.
            classic.described("b and c are in", state="CompletingRebalance"),
        ],
    ),
    Script(
        "a consumer group that is full",
        [
            *ready(),
            beat("n comes", N),
            beat("a third comes", "member-x", versions=ALL),
            beat("a third as an instance", "member-x", instance_id="i", versions=ALL),
            classic.join("a third the old way", protocols=protocols("range"), versions=ALL),
            beat("n comes once more", N),
            described("two are there", versions=ALL),
            beat("n goes", N, -1),
            beat("a third comes when there is a place", "member-x"),
            described("two again", versions=ALL),
        ],
    ),
    Script(
        "a classic member that is silent",
        [
            topic(),
            *classic.group(),
            classic.join("the id", capture={"m": "member_id"}),
            classic.join("m joins", "${m}", session_timeout_ms=SHORT_MS),
            classic.described("m is gone", state="Empty", versions=[6]),
            classic.beat("m's heartbeat", versions=ALL),
            classic.sync("m's sync", given=["${m}"], versions=ALL),
            classic.join("m joins again", "${m}", versions=ALL),
            commit("m commits", "${m}", 1, versions=ALL),
            classic.leave("m leaves", versions=ALL),
            classic.described("nobody is there", versions=ALL),
        ],
    ),
    Script(
        "a static classic member that is silent",
        [
            *classic.group(),
            classic.join("i joins", group_instance_id="i", session_timeout_ms=SHORT_MS, capture={"m": "member_id"}),
            classic.described("i is gone", state="Empty"),
            classic.beat("i's heartbeat", group_instance_id="i", versions=range(3, 5)),
            classic.leave("i leaves", "", "i", versions=range(3, 6)),
            classic.join("i joins again", group_instance_id="i"),
        ],
    ),
    Script(
        "a classic member that does not join again in time",
        [
            *classic.group(),
            *enter("m", rebalance_timeout_ms=ENOUGH_MS),
            classic.sync("m syncs", given=["${m}"]),
            *enter("n", connection="n", parked="n is in", rebalance_timeout_ms=ENOUGH_MS),
            answer("n is in", unordered=["members"]),
            classic.beat("m's heartbeat", versions=ALL),
            classic.described("n alone", versions=ALL),
        ],
    ),
    Script(
        "a classic member that does not sync in time",
        [
            *classic.group(),
            *enter("m", rebalance_timeout_ms=SHORT_MS),
            classic.described("m is gone", state="Empty"),
            classic.sync("m syncs too late", given=["${m}"], versions=ALL),
            classic.described("nobody is there", versions=ALL),
        ],
    ),
    Script(
        "a member that is silent",
        [
            *own_settings(SHORT_SESSION),
            topic("t", partitions=2),
            *group("t"),
            beat("m comes"),
            described("m is gone", until=empty),
            beat("m's heartbeat", M, 2, versions=ALL),
            beat("m goes", M, -1, versions=ALL),
            commit("m commits", M, 2, versions=ALL),
            offsets("m's offsets", more={"member_id": M, "member_epoch": 2}, versions=ALL),
            beat("m comes again"),
        ],
    ),
    Script(
        "a static member that is silent",
        [
            *own_settings(SHORT_SESSION),
            topic("t", partitions=2),
            *group("t"),
            beat("i comes", instance_id="i"),
            described("i is gone", until=empty),
            beat("i's heartbeat", M, 2, instance_id="i", versions=ALL),
            beat("i goes for a while", M, -2, instance_id="i", versions=ALL),
            beat("i is back", "member-x", instance_id="i"),
        ],
    ),
    Script(
        "a member that does not give up in time",
        [
            topic("t", partitions=2),
            *group("t"),
            beat("m comes", rebalance_timeout_ms=SHORT_MS),
            beat("m has them", M, 2, topic_partitions=owning(0, 1)),
            beat("n comes", N),
            beat("m is told to give up one", M, 2),
            described("m is gone", until=alone),
            beat("m gives up one", M, 2, topic_partitions=owning(0), versions=ALL),
            beat("n gets all", N, 3),
            described("n has all", versions=ALL),
        ],
    ),
    Script(
        "a new member in a classic group, which stays one",
        [
            topic("t", partitions=2),
            *group("t"),
            *enter("k", protocols=protocols("range")),
            beat("m comes while it is completing", versions=ALL),
            classic.sync("k syncs", "${k}", given=["${k}"]),
            beat("m comes", versions=ALL),
            beat("m goes on", M, 2, versions=ALL),
            beat("m goes", M, -1, versions=ALL),
            described("it is no consumer group", versions=ALL),
            classic.described("it is classic", versions=ALL),
            classic.leave("k leaves", "${k}"),
            beat("m comes when it is empty"),
            described("it is a consumer group", versions=ALL),
        ],
    ),
    Script(
        "a classic member in a consumer group, which stays one",
        [
            *ready(),
            # The uniform assignor of Kafka goes by the hash of k's id, which is another one each time.
            beat("m wants another assignor", M, 2, server_assignor="range"),
            classic.join("k comes", protocols=protocols("range"), versions=ALL),
            classic.join("k comes as an instance", group_instance_id="i", protocols=protocols("range")),
            described("who is there", versions=ALL),
            beat("m goes", M, -1),
            described("without m", versions=ALL),
            classic.described("the old way", versions=ALL),
        ],
    ),
    Script(
        "an empty group that changes its kind all the same",
        [
            topic("t"),
            *group("t"),
            *settled(1),
            beat("m goes", M, -1),
            *enter("k", protocols=protocols("range")),
            classic.described("a classic group", versions=ALL),
        ],
    ),
    Script(
        "metadata of offsets",
        each="OffsetCommit",
        steps=[
            topic(),
            *classic.group(),
            *[commit(label, rows=[noted(metadata)]) for label, metadata in NOTES.items()],
            offsets("what came of it"),
        ],
    ),
    Script(
        "metadata of offsets in transactions",
        [
            topic(partitions=2),
            *classic.group(),
            *transactions.producer(),
            transactions.add_group("the group added"),
            *[in_transaction(label, metadata) for label, metadata in NOTES.items()],
            transactions.end("it ends"),
            transactions.described("it is over", "CompleteCommit"),
            offsets("what came of it", [0, 1], require_stable=True),
        ],
    ),
]
