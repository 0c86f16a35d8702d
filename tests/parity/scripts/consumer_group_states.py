"""Groups of the new protocol (KIP-848): every call of groups in every state of a group."""

from __future__ import annotations

from collections.abc import Sequence

from parity import asking_groups as classic
from parity import asking_transactions as transactions
from parity.asking_consumers import AT_ONCE, M, N, beat, described, group, own_settings, owning, settled
from parity.asking_groups import all_offsets, commit, delete, drop, offsets, owns, protocols
from parity.notation import ALL, Ask, Script, Step, ask, topic

LONG_MS = "600000"
SETTINGS = {**AT_ONCE, **transactions.FEW_PARTITIONS, "group.consumer.max.assignment.interval.ms": LONG_MS}

NOBODY = "nobody-here"

EVERYTHING: list[Step] = [
    # Each call at all of its versions; none of them changes who is in the group.
    described("described", include_authorized_operations=True, versions=ALL),
    classic.described("described the old way", include_authorized_operations=True, versions=ALL),
    beat("a heartbeat of nobody", NOBODY, 2, versions=ALL),
    beat("a heartbeat without a name", "", 2, versions=ALL),
    beat("a heartbeat as a stranger's instance", NOBODY, 2, instance_id="stranger", versions=ALL),
    beat("nobody goes", NOBODY, -1, versions=ALL),
    beat("nobody goes for a while", NOBODY, -2, instance_id="stranger", versions=ALL),
    beat("one comes with an assignor that there is not", NOBODY, server_assignor="nonsense", versions=ALL),
    beat("one comes with an expression that makes no sense", NOBODY, subscribed_topic_regex="(", versions=[1]),
    classic.beat("a classic heartbeat of nobody", NOBODY, versions=ALL),
    classic.beat("a classic heartbeat without a name", "", versions=ALL),
    classic.beat("a classic heartbeat as an instance", NOBODY, group_instance_id="stranger", versions=range(3, 5)),
    classic.sync("a sync of nobody", NOBODY, versions=ALL),
    classic.sync("a sync as a stranger's instance", NOBODY, group_instance_id="stranger", versions=range(3, 6)),
    classic.join("a join with nonsense for a subscription", NOBODY, versions=ALL),
    classic.join("a join under another type", protocol_type="connect", versions=ALL),
    classic.join("a join without protocols", protocols=[], versions=ALL),
    classic.join("a session too short", session_timeout_ms=1, versions=ALL),
    classic.leave("nobody leaves", NOBODY, versions=ALL),
    classic.leave("a stranger's instance leaves", "", "stranger", versions=range(3, 6)),
    commit("a commit of nobody", NOBODY, 2, versions=ALL),
    commit("a commit of nobody, without an epoch", NOBODY, -1, versions=ALL),
    commit("a commit of an epoch alone", "", 2, versions=ALL),
    commit("a commit as a stranger's instance", NOBODY, 2, group_instance_id="stranger", versions=range(7, 11)),
    commit("a commit from outside", versions=ALL),
    offsets("offsets of nobody", more={"member_id": NOBODY, "member_epoch": 2}, versions=ALL),
    offsets("offsets of anybody", versions=ALL),
    all_offsets("all offsets"),
]

OF_M: list[Step] = [
    # Of the member ``m``, who is in the group at its second epoch or was.
    beat("m's heartbeat", M, 2, versions=ALL),
    beat("m's heartbeat, an epoch too large", M, 9, versions=ALL),
    beat("m's heartbeat as an instance that it is not", M, 2, instance_id="stranger", versions=ALL),
    beat("m goes for a while as an instance that it is not", M, -2, instance_id="stranger", versions=ALL),
    classic.beat("m's classic heartbeat", M, 2, versions=ALL),
    classic.sync("m's sync", M, 2, versions=ALL),
    classic.join("m joins with nonsense for a subscription", M, versions=ALL),
    commit("m commits", M, 2, versions=ALL),
    commit("m commits in the epoch before", M, 1, versions=ALL),
    commit("m commits in an epoch to come", M, 9, versions=ALL),
    commit("m commits without an epoch", M, -1, versions=ALL),
    offsets("m's offsets", more={"member_id": M, "member_epoch": 2}, versions=ALL),
    offsets("m's offsets in an epoch to come", more={"member_id": M, "member_epoch": 9}, versions=ALL),
    drop("an offset deleted"),
    drop("an offset of another topic deleted", to="${u}"),
]

IN_A_TRANSACTION: list[Step] = [
    *transactions.producer(),
    transactions.add_group("the group in a transaction"),
    transactions.commit("m in a transaction", member_id=M, generation_id=2, versions=range(3, 6)),
    transactions.commit("m in a transaction, an epoch too large", member_id=M, generation_id=9, versions=range(3, 6)),
    transactions.commit("nobody in a transaction", member_id=NOBODY, generation_id=2, versions=range(3, 6)),
    transactions.commit("anybody in a transaction", versions=range(3, 6)),
    offsets("only what is certain", require_stable=True, versions=range(7, 11)),
    transactions.end("it ends"),
    transactions.described("it is over", "CompleteCommit"),
    offsets("what came of it", require_stable=True, versions=range(7, 11)),
]

WELCOME = {"a join under another type"}
"""In a group without members."""


def in_state(name: str, *steps: Step, last: Sequence[Step] = (), settings: dict[str, str] | None = None) -> Script:
    first = own_settings(settings) if settings else []
    begun = [*first, topic("t", partitions=4), topic("u"), *group("t", "u"), *settled(4), *steps]
    return Script(
        name, [*begun, *EVERYTHING, *OF_M, *IN_A_TRANSACTION, delete("the group deleted", versions=ALL), *last]
    )


def unwelcome(script: Script) -> Script:
    steps = [each for each in script.steps if not isinstance(each, Ask) or each.label not in WELCOME]
    return Script(script.name, steps)


def list_by(states: list[str], kinds: list[str], versions: Sequence[int]) -> Ask:
    label = f"listed by state {states} and type {kinds}"
    return ask("ListGroups", label, versions=versions, states_filter=states, types_filter=kinds, unordered=["groups"])


GIVES_HALF: list[Step] = [
    beat("m is told to give up half", M, 2, topic_partitions=owning(0, 1, 2, 3)),
    beat("m gives up half", M, 2, topic_partitions=owning(0, 1)),
    beat("n is given half", N, 3),
    described("each has half", versions=ALL),
]

SCRIPTS = [
    in_state(
        "in a stable consumer group",
        last=[beat("m goes", M, -1), described("m has gone", versions=ALL), delete("it is deleted"), described("gone")],
    ),
    in_state("in a consumer group that is reconciling", beat("n comes", N), last=GIVES_HALF),
    in_state(
        "in a consumer group that is assigning",
        beat("n comes", N),
        settings={"consumer.assignment.interval.ms": LONG_MS},
        last=[
            beat("n waits", N, 2, topic_partitions=[]),
            beat("n goes", N, -1),
            described("n is gone", versions=ALL),
            beat("m goes", M, -1),
            described("m is gone too", versions=ALL),
        ],
    ),
    unwelcome(
        in_state(
            "in a consumer group that is empty",
            commit("m commits before", M, 2),
            beat("m goes", M, -1),
            last=[described("it is gone", versions=ALL)],
        )
    ),
    Script(
        "members that join the old way",
        [
            topic("t", partitions=4),
            *group("t"),
            *settled(4),
            classic.join("one joins under a name never given", NOBODY, protocols=protocols("range"), versions=ALL),
            classic.join("m joins the old way", M, protocols=protocols("range", metadata=owns("${t}", 0, 1, 2, 3))),
            described("both", versions=ALL),
            classic.beat("m's heartbeat", M, 2),
            classic.join("m gives up half", M, protocols=protocols("range", metadata=owns("${t}", 0, 1))),
            classic.sync("m syncs", M, 3),
            described("each has half", versions=ALL),
            classic.beat("m's heartbeat of the epoch before", M, 2, versions=ALL),
            commit("m commits in the epoch in which it was given that", M, 2, versions=ALL),
            commit(
                "m commits what it gave up", M, 2, rows=[{"partition_index": 3, "committed_offset": 5}], versions=ALL
            ),
            commit("m commits in an epoch before that", M, 1, versions=ALL),
            commit("m commits in an epoch to come", M, 9, versions=ALL),
            offsets("m's offsets in the epoch before", more={"member_id": M, "member_epoch": 2}, versions=ALL),
            *IN_A_TRANSACTION,
        ],
    ),
    Script(
        "an empty consumer group that classic members join",
        [
            topic("t"),
            *group("t"),
            *settled(1),
            beat("m goes", M, -1),
            classic.join("without protocols", protocols=[], versions=ALL),
            classic.join("under a name never given", NOBODY, versions=ALL),
            described("it is what it was", versions=ALL),
            *classic.enter("k", protocol_type="connect"),
            described("it is classic", versions=ALL),
            classic.described("with a member", versions=ALL),
        ],
    ),
    Script(
        "consumer groups of every state listed",
        fresh=True,
        steps=[
            *own_settings({"consumer.assignment.interval.ms": LONG_MS}, "a"),
            topic("t"),
            *[each for handle in ("a", "e", "r", "s") for each in group("t", handle=handle)],
            *[each for handle in ("a", "e", "r", "s") for each in settled(1, of=handle)],
            beat("n comes in a", N, of="a"),
            beat("m goes in e", M, -1, of="e"),
            beat("m wants less in r", M, 2, subscribed_topic_names=["nothing"], topic_partitions=owning(0), of="r"),
            described("all four", "${a}", "${e}", "${r}", "${s}", versions=ALL),
            *[list_by([], kinds, ALL) for kinds in ([], ["consumer"])],
            *[list_by([], kinds, [5]) for kinds in (["classic"], ["CONSUMER", "classic"])],
            *[
                list_by(states, kinds, [4, 5])
                for states in (["Assigning"], ["Reconciling"], ["Stable"], ["Empty"], ["assigning", "RECONCILING"])
                for kinds in ([], ["consumer"])
            ],
            delete("all four deleted", "${a}", "${e}", "${r}", "${s}", versions=ALL),
        ],
    ),
]
