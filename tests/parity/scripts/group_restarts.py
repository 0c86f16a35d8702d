"""What a restart leaves of groups: members, generations and epochs, who has what, offsets, and who may go on."""

from __future__ import annotations

from parity import asking_groups as classic
from parity.asking_consumers import AT_ONCE, M, N, beat, described, group, own_settings, owning, settled
from parity.asking_groups import NOT_YET, all_offsets, commit, enter, offsets, protocols
from parity.notation import ALL, Restart, Script, Step, answer, ask, topic

LONG_MS = "600000"
SETTINGS = {**AT_ONCE, "group.consumer.max.assignment.interval.ms": LONG_MS}


def again(*topics: str) -> list[Step]:
    """The coordinator is there again (all groups are on one partition) and has heard of ``topics``."""
    loaded = ask(
        "DescribeGroups",
        "the coordinator is there again",
        groups=["${g}"],
        until=lambda answer: answer.groups[0].error_code not in NOT_YET,
        shown=False,
    )
    return [Restart(), loaded, *group(*topics, handle="later")]


SCRIPTS = [
    Script(
        "a classic group",
        fresh=True,
        steps=[
            topic("t", partitions=2),
            *classic.group(),
            *classic.stable(),
            *classic.second(),
            classic.join("m joins again", "${m}"),
            answer("n is in", unordered=["members"]),
            classic.sync("m syncs again", generation=2, given=["${m}", "${n}"]),
            classic.sync("n syncs", "${n}", 2, connection="n"),
            commit("m commits", "${m}", 2),
            classic.join("o is given an id", capture={"o": "member_id"}),
            *again(),
            classic.described("described", versions=ALL),
            offsets("offsets", versions=ALL),
            classic.beat("m's heartbeat", "${m}", 2, versions=ALL),
            classic.beat("m's heartbeat of the generation before", "${m}", 1, versions=ALL),
            classic.sync("n syncs once more", "${n}", 2, versions=ALL),
            classic.join("o joins with its id of before", "${o}", versions=ALL),
            commit("n commits", "${n}", 2, versions=ALL),
            commit("n commits in the generation before", "${n}", 1, versions=ALL),
            commit("one from outside commits", versions=ALL),
            classic.delete("deleted", versions=ALL),
            classic.leave("n leaves", "${n}"),
            classic.beat("m is told", "${m}", 2),
            classic.join("m joins for the third time", "${m}"),
            classic.sync("m syncs for the third time", generation=3, given=["${m}"]),
            classic.described("m alone", versions=ALL),
        ],
    ),
    Script(
        "classic groups of other states",
        fresh=True,
        steps=[
            topic("t", partitions=2),
            *[each for handle in ("g", "completing", "left", "preparing") for each in classic.group(handle)],
            # g has a static member
            classic.join("i joins", group_instance_id="i", capture={"i": "member_id"}),
            classic.sync("i syncs", "${i}", given=["${i}"], group_instance_id="i"),
            # completing has a leader that has not said anything yet
            *enter("c", of="completing"),
            # left has offsets and nobody
            *enter("l", of="left"),
            classic.sync("l syncs", "${l}", given=["${l}"], of="left"),
            commit("l commits", "${l}", 1, of="left"),
            classic.leave("l leaves", "${l}", of="left"),
            # preparing waits for p to notice that q has come
            *enter("p", of="preparing"),
            classic.sync("p syncs", "${p}", given=["${p}"], of="preparing"),
            *enter("q", of="preparing", connection="q", parked="q is in"),
            classic.described("q waits", of="preparing", state="PreparingRebalance"),
            *again(),
            *[
                classic.described(f"{handle} described", of=handle, versions=ALL)
                for handle in ("g", "completing", "left", "preparing")
            ],
            classic.beat("i's heartbeat", "${i}", group_instance_id="i"),
            classic.join("i joins again under a new id", group_instance_id="i", capture={"j": "member_id"}),
            classic.beat("i's heartbeat under the id before", "${i}", group_instance_id="i"),
            classic.sync("i syncs again", "${j}", 1, group_instance_id="i"),
            classic.beat("c's heartbeat", "${c}", of="completing"),
            classic.sync("c syncs", "${c}", given=["${c}"], of="completing"),
            classic.join("c joins", "${c}", of="completing"),
            classic.beat("l's heartbeat", "${l}", of="left"),
            offsets("offsets of left", of="left"),
            classic.beat("p's heartbeat", "${p}", of="preparing"),
            classic.beat("q's heartbeat", "${q}", of="preparing"),
            classic.join("q joins once more", "${q}", of="preparing"),
            ask("ListGroups", "listed", versions=ALL, unordered=["groups"]),
        ],
    ),
    Script(
        "a consumer group",
        fresh=True,
        steps=[
            topic("t", partitions=4),
            *group("t"),
            *settled(4),
            beat("n comes", N),
            beat("m is told to give up half", M, 2, topic_partitions=owning(0, 1, 2, 3)),
            commit("m commits", M, 2),
            described("reconciling", versions=ALL),
            *again("t"),
            described("still reconciling", versions=ALL),
            offsets("m's offsets", more={"member_id": M, "member_epoch": 2}, versions=ALL),
            all_offsets("all offsets"),
            commit("m commits again", M, 2, versions=ALL),
            beat("n waits", N, 3, topic_partitions=[], versions=ALL),
            beat("m says nothing new", M, 2, versions=ALL),
            beat("m gives up half", M, 2, topic_partitions=owning(0, 1)),
            beat("n is given half", N, 3),
            beat("n has them", N, 3, topic_partitions=owning(2, 3)),
            described("stable", versions=ALL),
            *again("t"),
            described("still stable", versions=ALL),
            beat("m's epoch before, with more than it has", M, 2, topic_partitions=owning(0, 1, 2)),
            beat("m's heartbeat", M, 3, versions=ALL),
            beat("m's heartbeat, an epoch too large", M, 9, versions=ALL),
            beat("n comes once more", N),
            commit("m commits in the epoch before", M, 2, versions=ALL),
            beat("n goes", N, -1),
            beat("m gets all", M, 3),
            described("m alone", versions=ALL),
        ],
    ),
    Script(
        "consumer groups of other states",
        fresh=True,
        steps=[
            *own_settings({"consumer.assignment.interval.ms": LONG_MS}, "assigning"),
            topic("t", partitions=2),
            *[each for handle in ("g", "assigning", "away", "mixed") for each in group("t", handle=handle)],
            # g is empty, with offsets
            *settled(),
            commit("m commits", M, 2),
            beat("m goes", M, -1),
            # assigning has a member that waits for the next assignment
            *settled(of="assigning"),
            beat("n comes in assigning", N, of="assigning"),
            # away has a static member that said that it would come back
            beat("i comes", of="away", instance_id="i"),
            beat("i has them", M, 2, of="away", instance_id="i", topic_partitions=owning(0, 1)),
            beat("i goes for a while", M, -2, of="away", instance_id="i"),
            # mixed has a classic member too
            *settled(of="mixed"),
            *enter("k", of="mixed", protocols=protocols("range")),
            classic.sync("k syncs", "${k}", 3, of="mixed"),
            *again("t"),
            described("all of them", "${g}", "${assigning}", "${away}", "${mixed}", versions=ALL),
            ask("ListGroups", "listed", versions=ALL, unordered=["groups"]),
            offsets("the offsets of who has gone"),
            beat("m's heartbeat when gone", M, 2),
            beat("n waits in assigning", N, 2, of="assigning", topic_partitions=[]),
            beat("m in assigning", M, 2, of="assigning"),
            beat("i's heartbeat while away", M, 2, of="away", instance_id="i"),
            beat("i is back as another", "member-x", of="away", instance_id="i"),
            classic.beat("k's heartbeat", "${k}", 3, of="mixed"),
            beat("m gives up one in mixed", M, 2, of="mixed", topic_partitions=owning(0)),
            classic.beat("k is told", "${k}", 3, of="mixed"),
            classic.join("k joins again", "${k}", of="mixed", protocols=protocols("range")),
            classic.sync("k syncs again", "${k}", 3, of="mixed"),
            beat("m goes from mixed", M, -1, of="mixed"),
            classic.described("mixed is classic", of="mixed"),
            described("all of them in the end", "${g}", "${assigning}", "${away}", "${mixed}"),
        ],
    ),
]
