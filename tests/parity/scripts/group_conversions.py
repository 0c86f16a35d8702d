"""Classic and new (KIP-848) members in one group, and groups that change from one kind to the other."""

from __future__ import annotations

from parity import asking_groups as classic
from parity.asking_consumers import AT_ONCE, M, beat, described, group, owning, ready
from parity.asking_groups import commit, delete, offsets
from parity.notation import ALL, Script, topic

SETTINGS = AT_ONCE

SCRIPTS = [
    Script(
        "classic calls in a consumer group",
        [
            *ready(),
            classic.beat("m's heartbeat", M, versions=ALL),
            classic.sync("m's sync", M, versions=ALL),
            classic.join("somebody joins", "somebody", versions=ALL),
            classic.join("m joins", M, versions=ALL),
            classic.join("by a protocol of another type", protocol_type="connect", versions=ALL),
            classic.join("without protocols", protocols=[], versions=ALL),
            classic.join("with nonsense for a subscription", versions=[9]),
            classic.beat("somebody's heartbeat", "somebody", versions=ALL),
            classic.sync("somebody's sync", "somebody", versions=ALL),
            classic.leave("somebody leaves", "somebody", versions=ALL),
            classic.leave("a stranger's instance leaves", "", "stranger"),
            described("m is still there"),
            classic.leave("m leaves", M, versions=ALL),
            described("m left"),
        ],
    ),
    Script(
        "a classic member in a consumer group",
        [
            *ready(),
            *classic.enter("k", protocols=classic.protocols("range")),
            described("both", versions=ALL),
            classic.sync("k syncs", "${k}", 3),
            classic.beat("k's heartbeat", "${k}", 3, versions=ALL),
            classic.beat("k's heartbeat, another generation", "${k}", 2, versions=ALL),
            beat("m gives up one", M, 2, topic_partitions=owning(0)),
            classic.beat("k is told", "${k}", 3, versions=ALL),
            classic.join("k joins again", "${k}", protocols=classic.protocols("range")),
            classic.sync("k syncs again", "${k}", 3),
            classic.sync("k syncs by another protocol", "${k}", 3, protocol_name="other"),
            commit("k commits", "${k}", 3, versions=ALL),
            commit("k commits, another generation", "${k}", 7, versions=ALL),
            beat("k in the new way, with a wrong epoch", "${k}", 9),
            described("both in the end", versions=ALL),
            classic.leave("k leaves", "${k}"),
            beat("m gets all", M, 3),
            described("m alone"),
        ],
    ),
    Script(
        "new members in a classic group",
        [
            topic("t", partitions=2),
            *group("t"),
            *classic.enter("k", protocols=classic.protocols("range")),
            # The uniform assignor of Kafka goes by the hash of k's id, which is another one each time.
            beat("m comes while it is completing", server_assignor="range"),
            classic.sync("k syncs", "${k}", given=["${k}"]),
            described("it is classic no more", versions=ALL),
            beat("m comes again"),
            beat("m's heartbeat", M, 2),
            classic.described("what it is"),
        ],
    ),
    Script(
        "a new member beside a classic one that has partitions",
        [
            topic("t", partitions=2),
            *group("t"),
            *classic.enter("k", protocols=classic.protocols("range")),
            classic.sync(
                "k syncs", "${k}", assignments=[{"member_id": "${k}", "assignment": classic.assignment("${t}", 0, 1)}]
            ),
            commit("k commits", "${k}", 1),
            beat("m comes"),
            described("both", versions=ALL),
            classic.described("the old way", versions=ALL),
            classic.beat("k is told", "${k}", 1, versions=ALL),
            classic.join(
                "k joins again", "${k}", protocols=classic.protocols("range", metadata=classic.owns("${t}", 0))
            ),
            classic.sync("k syncs again", "${k}", 2),
            beat("m gets one", M, 2, topic_partitions=[]),
            described("both in the end", versions=ALL),
            classic.leave("k leaves", "${k}"),
            described("m alone", versions=ALL),
        ],
    ),
    Script(
        "the last new member goes and the group is classic again",
        [
            *ready(),
            *classic.enter("k", protocols=classic.protocols("range")),
            classic.sync("k syncs", "${k}", 3),
            beat("m goes", M, -1),
            described("it is no consumer group", versions=ALL),
            classic.described("it is classic", versions=ALL),
            classic.beat("k is told", "${k}", 3, versions=ALL),
        ],
    ),
    Script(
        "a group that changes its kind when it is empty",
        [
            topic("t", partitions=2),
            *group("t"),
            commit("offsets from outside"),
            beat("m comes"),
            described("a consumer group", versions=ALL),
            offsets("the offsets are kept"),
            beat("m goes", M, -1),
            *classic.enter("k"),
            classic.described("a classic group"),
            classic.sync("k syncs", "${k}", given=["${k}"]),
            classic.leave("k leaves", "${k}"),
            beat("m comes again"),
            described("a consumer group again"),
            beat("m goes again", M, -1),
            delete("deleted"),
            beat("m comes for the third time"),
        ],
    ),
]
