"""Groups of both kinds of members, and what becomes of them when the broker comes back with another policy, or with
other limits."""

from __future__ import annotations

from parity import asking_groups as classic
from parity.asking_consumers import M, beat, described, group
from parity.asking_groups import NOT_YET, commit, offsets, protocols
from parity.migrations import POLICY, both_ways, classic_group, enters, joins, mixed_group, settings, syncs
from parity.notation import ALL, Restart, Script, Step, answer, ask

SETTINGS = settings("bidirectional")


def again(changed: dict[str, str]) -> list[Step]:
    """The coordinator is there again, and has heard of ``t``."""
    loaded = ask(
        "DescribeGroups",
        "the coordinator is there again",
        groups=["${g}"],
        until=lambda answer: answer.groups[0].error_code not in NOT_YET,
        shown=False,
    )
    return [Restart(changed), loaded, *group("t", handle="later")]


def two_classic_members() -> list[Step]:
    """``k`` and ``l``, in the second generation of a classic group; ``k`` has everything."""
    return [
        *classic_group(),
        *enters("l", connection="l", parked="l is in"),
        classic.described("l waits", state="PreparingRebalance", shown=False),
        joins("k joins again", "${k}", 0, 1),
        answer("l is in", unordered=["members"]),
        syncs("k syncs again", "${k}", 2, 0, 1),
        classic.sync("l syncs", "${l}", 2, connection="l"),
    ]


SCRIPTS = [
    Script(
        "a mixed group that none may be any more",
        fresh=True,
        steps=[
            *mixed_group(),
            commit("k commits", "${k}", 3),
            *again({POLICY: "disabled"}),
            *both_ways("when none may be"),
            beat("m's heartbeat", M, 3, versions=ALL),
            classic.beat("k's heartbeat", "${k}", 3, versions=ALL),
            classic.sync("k syncs once more", "${k}", 3, versions=ALL),
            commit("k commits once more", "${k}", 3, versions=ALL),
            joins("k joins", "${k}", 1, versions=ALL),
            classic.join("l comes", protocols=protocols("range"), versions=ALL),
            beat("m goes", M, -1),
            *both_ways("when m has gone"),
            classic.beat("k's heartbeat when m has gone", "${k}", 3, versions=ALL),
            joins("k joins when m has gone", "${k}", 1, versions=ALL),
            beat("m comes again"),
            *both_ways("when m has come again"),
            classic.leave("k leaves", "${k}"),
            *both_ways("when k has left"),
            offsets("the offsets"),
        ],
    ),
    Script(
        "a mixed group that may become what it likes, then only one, then only the other",
        fresh=True,
        steps=[
            *mixed_group(),
            commit("k commits", "${k}", 3),
            *again({POLICY: "upgrade"}),
            beat("m goes while it must stay", M, -1),
            *both_ways("when it has stayed"),
            *again({POLICY: "downgrade"}),
            *both_ways("when it might have gone"),
            joins("k joins", "${k}", 1),
            classic.sync("k syncs with all", "${k}", 4),
            beat("m comes again"),
            beat("m goes while it may change", M, -1),
            *both_ways("when it has changed"),
            *again({}),
            *both_ways("when it has changed and was restarted"),
            classic.beat("k's heartbeat", "${k}", 5, versions=ALL),
            commit("k commits in the classic group", "${k}", 5),
            beat("m comes while it must stay", versions=ALL),
            *again({POLICY: "upgrade"}),
            beat("m comes while it may change"),
            *both_ways("when it has changed back"),
            *again({}),
            *both_ways("when it has changed back and was restarted"),
            classic.beat("k is told", "${k}", 5, versions=ALL),
            offsets("the offsets"),
        ],
    ),
    Script(
        "a classic group that is too large to be a consumer group",
        fresh=True,
        steps=[
            *two_classic_members(),
            *again({"group.consumer.max.size": "1"}),
            beat("m comes where one fits", versions=ALL),
            classic.described("it is classic", versions=ALL),
            *again({"group.consumer.max.size": "2"}),
            beat("m comes where two fit", versions=ALL),
            classic.described("it is still classic", versions=ALL),
            classic.beat("k's heartbeat", "${k}", 2),
            *again({"group.consumer.max.size": "3"}),
            beat("m comes where three fit"),
            classic.beat("k is told", "${k}", 2),
            classic.beat("l is told", "${l}", 2),
            ask("ListGroups", "listed", versions=[5], types_filter=["consumer"], unordered=["groups"]),
        ],
    ),
    Script(
        "a consumer group that is too large to be a classic group",
        fresh=True,
        steps=[
            *mixed_group(),
            *enters("l"),
            *again({"group.max.size": "1"}),
            beat("m goes", M, -1),
            described("it stays", versions=[1], until=lambda answer: len(answer.groups[0].members) == 2, shown=False),
            classic.described("it is not classic", versions=ALL),
            classic.beat("k's heartbeat when m has gone", "${k}", 3),
            classic.beat("l's heartbeat when m has gone", "${l}", 4),
            classic.leave("l leaves", "${l}"),
            *both_ways("when l has left"),
            classic.beat("k is told again", "${k}", 3),
            beat("m comes again"),
            beat("m goes again", M, -1),
            *both_ways("when m has gone again"),
        ],
    ),
]
