"""What scripts about groups say all the time, in one line each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from parity.notation import Ask, Late, MakeName, Step, ask, name, resolve

NOT_YET = {14, 15, 16}
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: its topic is being made or read."""

NULL = struct.pack(">i", -1)

AT_ONCE = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
"""Settings with which a first member need not wait for others."""


def subscription(*topics: str) -> Late:
    """What a classic consumer says of itself: version 0, its topics, no data of its own."""
    return Late(lambda variables: struct.pack(">hi", 0, len(topics)) + _names(topics, variables) + NULL)


def owns(topic: str, *partitions: int) -> Late:
    """The same of version 1: it reads one topic and still has these partitions of it."""

    def make(variables: Any) -> bytes:
        one = struct.pack(">i", 1)
        has = _partitions(topic, partitions, variables)
        return struct.pack(">h", 1) + one + _names([topic], variables) + NULL + one + has

    return Late(make)


def assignment(topic: str, *partitions: int) -> Late:
    """What a leader gives to a classic consumer: version 0, partitions of one topic, no data of its own."""
    return Late(lambda variables: struct.pack(">hi", 0, 1) + _partitions(topic, partitions, variables) + NULL)


def _names(topics: Sequence[str], variables: Any) -> bytes:
    names = [resolve(each, variables).encode() for each in topics]
    return b"".join(struct.pack(">h", len(each)) + each for each in names)


def _partitions(topic: str, partitions: Sequence[int], variables: Any) -> bytes:
    return _names([topic], variables) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)


def group(handle: str = "g") -> list[Step]:
    """A name for a group, whose coordinator is there."""
    found: MakeName = name(handle)
    key = f"${{{handle}}}"
    return [
        found,
        ask(
            "FindCoordinator",
            f"the coordinator of {handle}",
            coordinator_keys=[key],
            until=lambda answer: answer.coordinators[0].error_code == 0,
            shown=False,
        ),
        ask(
            "DescribeGroups",
            f"{handle} is not there yet",
            groups=[key],
            until=lambda answer: answer.groups[0].error_code not in NOT_YET,
            shown=False,
        ),
    ]


def protocols(*names: str, metadata: Any = None) -> list[dict[str, Any]]:
    return [{"name": each, "metadata": subscription("${t}") if metadata is None else metadata} for each in names]


def join(label: str = "", member: str = "", *, of: str = "g", **options: Any) -> Ask:
    options.setdefault("protocols", protocols("range", metadata=b"likes"))
    fields = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", **options}
    return ask("JoinGroup", label or "joins", group_id=f"${{{of}}}", member_id=member, unordered=["members"], **fields)


def enter(member: str = "m", label: str = "", *, of: str = "g", **options: Any) -> list[Step]:
    """The newest way in: an id first, then in with it."""
    words = label or f"{member} joins"
    return [
        join(f"{words}: the id", of=of, capture={member: "member_id"}, **{**options, "parked": ""}),
        join(words, f"${{{member}}}", of=of, **options),
    ]


def sync(
    label: str = "", member: str = "${m}", generation: int = 1, *, of: str = "g", given: Sequence[str] = (), **more: Any
) -> Ask:
    """``given``: members to whom the leader gives something, each what is its own."""
    assignments = [{"member_id": each, "assignment": each.strip("${}").encode()} for each in given]
    return ask(
        "SyncGroup",
        label or "syncs",
        **{
            "group_id": f"${{{of}}}",
            "generation_id": generation,
            "member_id": member,
            "assignments": assignments,
            "protocol_type": "consumer",
            "protocol_name": "range",
            **more,
        },
    )


def beat(label: str = "", member: str = "${m}", generation: int = 1, *, of: str = "g", **more: Any) -> Ask:
    fields = {"group_id": f"${{{of}}}", "generation_id": generation, "member_id": member, **more}
    return ask("Heartbeat", label or "heartbeat", **fields)


def leave(label: str = "", member: str = "${m}", instance: str | None = None, *, of: str = "g", **more: Any) -> Ask:
    fields = {
        "group_id": f"${{{of}}}",
        "member_id": member,
        "members": [{"member_id": member, "group_instance_id": instance, "reason": "enough"}],
        **more,
    }
    return ask("LeaveGroup", label or "leaves", unordered=["members"], **fields)


def described(label: str, *, of: str = "g", state: str | None = None, is_there: bool = False, **options: Any) -> Ask:
    """``state``: waited for, where what leads there is not answered yet. ``is_there``: so is any but Dead: Kafka
    answers a JoinGroup that makes a group a moment before it finds that group."""
    until = None if state is None else (lambda answer: answer.groups[0].group_state == state)
    if is_there:
        until = lambda answer: answer.groups[0].group_state != "Dead"  # noqa: E731
    return ask("DescribeGroups", label, groups=[f"${{{of}}}"], until=until, unordered=["groups.members"], **options)


def commit(
    label: str = "",
    member: str = "",
    generation: int = -1,
    *,
    of: str = "g",
    to: str = "t",
    rows: Sequence[dict[str, Any]] | None = None,
    **options: Any,
) -> Ask:
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "note"}
    topics = [{"name": f"${{{to}}}", "topic_id": f"${{{to}.id}}", "partitions": [row] if rows is None else rows}]
    fields = {
        "group_id": f"${{{of}}}",
        "member_id": member,
        "generation_id_or_member_epoch": generation,
        "topics": topics,
        **options,
    }
    return ask("OffsetCommit", label, **fields)


def offsets(
    label: str = "", indexes: Sequence[int] = (0,), *, of: str = "g", to: str = "t", more: Any = None, **options: Any
) -> Ask:
    """``more``: of the group, in versions that ask for several."""
    topics = [{"name": f"${{{to}}}", "partition_indexes": list(indexes)}]
    by_id = [{**topics[0], "topic_id": f"${{{to}.id}}"}]
    return ask(
        "OffsetFetch",
        label or "offsets",
        group_id=f"${{{of}}}",
        topics=topics,
        groups=[{"group_id": f"${{{of}}}", "topics": by_id, **(more or {})}],
        **options,
    )


def all_offsets(label: str, *, of: str = "g", **options: Any) -> Ask:
    of_group = {"group_id": f"${{{of}}}", "topics": None}
    return ask(
        "OffsetFetch",
        label,
        versions=range(2, 11),
        group_id=f"${{{of}}}",
        topics=None,
        groups=[of_group],
        unordered=["topics", "topics.partitions", "groups.topics", "groups.topics.partitions"],
        **options,
    )


def drop(label: str, indexes: Sequence[int] = (0,), *, of: str = "g", to: str = "${t}") -> Ask:
    rows = [{"partition_index": each} for each in indexes]
    return ask("OffsetDelete", label, group_id=f"${{{of}}}", topics=[{"name": to, "partitions": rows}])


def delete(label: str, *groups: str, **options: Any) -> Ask:
    return ask("DeleteGroups", label, groups_names=list(groups or ("${g}",)), unordered=["results"], **options)


def listed(states: list[str], kinds: list[str]) -> Ask:
    return ask(
        "ListGroups",
        f"listed by state {states} and type {kinds}",
        versions=[5],
        states_filter=states,
        types_filter=kinds,
        unordered=["groups"],
    )


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
