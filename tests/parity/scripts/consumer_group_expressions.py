"""Groups of the new protocol (KIP-848) that subscribe to topics by a regular expression."""

from __future__ import annotations

from parity.asking_consumers import AT_ONCE, M, N, beat, described, group, owning
from parity.notation import ALL, Ask, Script, topic

SETTINGS = AT_ONCE


def looked_up(label: str, epoch: int) -> Ask:
    """The brokers look for topics that fit now and then: M is told when they have."""
    return beat(
        label, M, epoch, versions=[1], until=lambda answer: answer.member_epoch > epoch or answer.error_code != 0
    )


SCRIPTS = [
    Script(
        "regular expressions that make no sense",
        [
            topic("t"),
            *group("t"),
            *[
                beat(f"'{each}'", subscribed_topic_names=None, subscribed_topic_regex=each, versions=[1])
                for each in ("(", "[a", "*", "a{2,1}", "\\", "(?<n>a)(?=b)")
            ],
            described("nothing came of it"),
        ],
    ),
    Script(
        "topics by a regular expression",
        [
            topic("t", partitions=2),
            topic("u"),
            *group("t", "u"),
            beat("comes", subscribed_topic_names=None, subscribed_topic_regex="${t}.*", versions=[1]),
            looked_up("is given what fits", 1),
            beat("has them", M, 2, topic_partitions=owning(0, 1), versions=[1]),
            described("described", versions=ALL),
            beat("wants no more by expression", M, 2, subscribed_topic_regex="", versions=[1]),
            described("nothing is wanted", versions=ALL),
        ],
    ),
    Script(
        "a regular expression that changes",
        [
            topic("t", partitions=2),
            topic("u"),
            *group("t", "u"),
            beat("m comes by name and by expression", subscribed_topic_regex="${t}.*", versions=[1]),
            looked_up("the expression is looked up", 2),
            beat("m has them", M, 3, topic_partitions=owning(0, 1), versions=[1]),
            beat("the name is enough", M, 3, subscribed_topic_regex="", versions=[1]),
            described("by name alone"),
            beat("another expression", M, 4, subscribed_topic_regex="${u}.*", versions=[1]),
            described("by name and by another expression", until=lambda answer: answer.groups[0].group_epoch == 5),
            beat("an expression after the other", M, 4, subscribed_topic_regex="${t}|${u}", versions=[1]),
            described("by a third"),
            beat("no expression any more", M, 5, subscribed_topic_regex="", versions=[1]),
            described("in the end"),
        ],
    ),
    Script(
        "an expression of two members",
        [
            topic("t", partitions=2),
            topic("u"),
            *group("t", "u"),
            beat("m comes", subscribed_topic_names=None, subscribed_topic_regex="${t}.*", versions=[1]),
            looked_up("the expression is looked up", 1),
            beat("m has them", M, 2, topic_partitions=owning(0, 1), versions=[1]),
            beat("n comes", N, subscribed_topic_names=None, subscribed_topic_regex="${t}.*", versions=[1]),
            described("both by the same"),
            beat("m gives up one", M, 2, topic_partitions=owning(0), versions=[1]),
            beat("n gets one", N, 3, topic_partitions=[], versions=[1]),
            beat("m wants another", M, 3, subscribed_topic_regex="${u}.*", versions=[1]),
            described("m by another"),
            beat("m wants the same as n again", M, 3, subscribed_topic_regex="${t}.*", versions=[1]),
            described("both by the same again"),
            beat("n goes", N, -1, versions=[1]),
            described("n is gone"),
        ],
    ),
]
