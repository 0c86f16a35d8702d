"""What scripts about groups of the new protocol say all the time, in one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parity.asking_groups import group as classic_group
from parity.notation import Ask, Step, ask, name, topic

M, N = "member-m", "member-n"
AT_ONCE = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
}
"""Settings with which a first member need not wait for others, nor anybody for an assignment."""

ANSWERED = ["assignment.topic_partitions"]
DESCRIBED = [
    "groups.members.subscribed_topic_names",
    "groups.members.assignment.topic_partitions",
    "groups.members.target_assignment.topic_partitions",
    "groups.members",
    "groups",
]
"""Kafka keeps these in hash maps."""


def beat(label: str, member: str = M, epoch: int = 0, *, of: str = "g", **options: Any) -> Ask:
    """Says nothing that it said before, unless it comes (epoch 0): then it subscribes to ``t``."""
    coming = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["${t}"], "topic_partitions": []}
    fields = {
        "group_id": f"${{{of}}}",
        "member_id": member,
        "member_epoch": epoch,
        **(coming if epoch == 0 else {}),
        **options,
    }
    return ask("ConsumerGroupHeartbeat", label, unordered=ANSWERED, **fields)


def group(*topics: str, handle: str = "g") -> list[Step]:
    """A name for a group, whose coordinator is there and has heard of ``topics``: Kafka tells it after it told us.

    All groups are on one partition, so that what is true for the group that tries is true for all."""
    waiting = beat(
        f"{handle} hears of topics",
        epoch=0,
        group_id=f"${{{handle}}}-before",
        versions=[1],
        shown=False,
        subscribed_topic_names=[f"${{{each}}}" for each in topics],
        until=lambda answer: answer.assignment and len(answer.assignment.topic_partitions) == len(topics),
    )
    leaving = beat(f"{handle} has heard", epoch=-1, group_id=f"${{{handle}}}-before", versions=[1], shown=False)
    return [*classic_group(handle), *([waiting, leaving] if topics else [])]


def own_settings(settings: dict[str, str], handle: str = "g") -> list[Step]:
    """Of a group that nobody has used. Said before its topics are made: who has heard of those has heard of them."""
    configs = [{"name": each, "value": value} for each, value in settings.items()]
    of_group = {"resource_type": 32, "resource_name": f"${{{handle}}}", "configs": configs}
    return [name(handle), ask("IncrementalAlterConfigs", f"{handle} has settings of its own", resources=[of_group])]


def owning(*partitions: int, of: str = "t") -> list[dict[str, Any]]:
    return [{"topic_id": f"${{{of}.id}}", "partitions": list(partitions)}] if partitions else []


def described(label: str, *groups: str, until: Callable[[Any], bool] | None = None, **options: Any) -> Ask:
    asked = list(groups or ("${g}",))
    return ask("ConsumerGroupDescribe", label, group_ids=asked, until=until, unordered=DESCRIBED, **options)


def ready(partitions: int = 2) -> list[Step]:
    """A group of one member, ``M``, that has all partitions of ``t`` and says so."""
    return [topic("t", partitions=partitions), *group("t"), *settled(partitions)]


def settled(partitions: int = 2, *, of: str = "g") -> list[Step]:
    """The same, where the topic and the group's name are there already."""
    words = "" if of == "g" else f" in {of}"
    return [
        beat(f"m comes{words}", of=of),
        beat(f"m has them{words}", M, 2, topic_partitions=owning(*range(partitions)), of=of),
    ]
