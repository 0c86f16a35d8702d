"""``headpond groups list`` and ``describe``."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from headpond.cli.common.failures import OK, CommandFailed, counted, did_you_mean
from headpond.cli.common.output import Column, print_json, print_line, print_table
from headpond.cli.common.progress import Progress
from headpond.client import Client, ClientError
from headpond.client.admin import LATEST, Admin
from headpond.client.group_admin import GroupDescription, GroupOffset, Groups, ListedGroup
from headpond.client.routing import topics_of
from headpond.model import ErrorCode, TopicPartition

NO_GROUPS = "there are no groups"


async def show_list(client: Client, options: argparse.Namespace) -> int:
    groups = [
        group
        for group in await Groups(client).all()
        if _is_wanted(group.state, options.state) and _is_wanted(group.kind, options.type)
    ]
    if options.json:
        print_json([_summary(group) for group in groups])
    elif not groups:
        print_line(f"{NO_GROUPS} of that kind" if options.state or options.type else NO_GROUPS)
    else:
        rows = [(group.group_id, group.kind, group.state, group.protocol_type) for group in groups]
        print_table([Column("group"), Column("type"), Column("state"), Column("protocol")], rows)
    return OK


def _is_wanted(value: str, wanted: str | None) -> bool:
    return wanted is None or value.lower() == wanted.lower()


def _summary(group: ListedGroup) -> dict[str, Any]:
    return {"group": group.group_id, "type": group.kind, "state": group.state, "protocol_type": group.protocol_type}


# --- describe ---------------------------------------------------------------------------------------------------------


class PartitionLag(NamedTuple):
    tp: TopicPartition
    committed: GroupOffset | None
    end_offset: int | None
    """None: the topic is gone, or nobody could say."""
    member_id: str | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end_offset is None:
            return None
        return max(0, self.end_offset - self.committed.offset)


class Details(NamedTuple):
    group: GroupDescription
    partitions: list[PartitionLag]

    @property
    def lag(self) -> int:
        return sum(one.lag or 0 for one in self.partitions)


async def show_details(client: Client, options: argparse.Namespace) -> int:
    groups = Groups(client)
    names = list(dict.fromkeys(options.names))
    if not names:
        names = [group.group_id for group in await groups.all() if group.kind in ("classic", "consumer", "")]
    details: list[Details] = []
    with Progress("asking about groups", len(names), clock=client.clock) as bar:
        for name in names:
            group = await groups.describe(name)
            if group is not None:
                details.append(await _details(client, group))
            elif options.names:
                raise CommandFailed(await unknown_group(groups, [name]))
            bar.advance(1)
    if options.json:
        print_json([_document(each) for each in details])
    elif not details:
        print_line(NO_GROUPS)
    for number, each in enumerate(details if not options.json else ()):
        if number:
            print()
        _print(each)
    return OK


async def unknown_group(groups: Groups, names: Sequence[str]) -> str:
    """``group x does not exist (did you mean y?)``."""
    known = {group.group_id: group.kind for group in await groups.all()}
    if len(names) > 1:
        return f"these groups do not exist: {', '.join(name + did_you_mean(name, known) for name in names)}"
    (name,) = names
    if name in known:
        return f"group {name} is a {known[name]} group: this command is for consumer groups"
    return f"group {name} does not exist{did_you_mean(name, known)}"


async def _details(client: Client, group: GroupDescription) -> Details:
    committed = await Groups(client).offsets(group.group_id)
    holders = {tp: member.member_id for member in group.members for tp in member.assignment}
    tps = sorted({*committed, *holders})
    ends = await end_offsets(client, tps)
    return Details(group, [PartitionLag(tp, committed.get(tp), ends.get(tp), holders.get(tp)) for tp in tps])


async def end_offsets(client: Client, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Of the partitions that exist and have a leader."""
    return {
        tp: listed.offset
        for tp, listed in (
            await Admin(client).list_offsets_or_errors(dict.fromkeys(await _reachable(client, tps), LATEST))
        ).items()
        if not isinstance(listed, ClientError)
    }


async def _reachable(client: Client, tps: Collection[TopicPartition]) -> list[TopicPartition]:
    """Whom to ask: a topic that was deleted meanwhile is not waited for."""
    if not tps:
        return []
    topics = (await client.metadata(list(topics_of(tps)))).topics
    led = {
        TopicPartition(topic.name, partition.index)
        for topic in topics.values()
        if topic.error is ErrorCode.NONE
        for partition in topic.partitions
        if partition.leader >= 0
    }
    return [tp for tp in tps if tp in led]


def _document(details: Details) -> dict[str, Any]:
    group = details.group
    return {
        "group": group.group_id,
        "type": group.kind,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor or None,
        "coordinator": group.coordinator_id,
        "lag": details.lag,
        "partitions": [
            {
                "topic": one.tp.topic,
                "partition": one.tp.partition,
                "committed_offset": one.committed.offset if one.committed is not None else None,
                "metadata": one.committed.metadata if one.committed is not None else None,
                "end_offset": one.end_offset,
                "lag": one.lag,
                "member": one.member_id,
            }
            for one in details.partitions
        ],
        "members": [
            {
                "id": member.member_id,
                "instance_id": member.instance_id,
                "client": member.client_id,
                "host": member.host,
                "assignment": [{"topic": tp.topic, "partition": tp.partition} for tp in member.assignment],
            }
            for member in group.members
        ],
    }


def _print(details: Details) -> None:
    group = details.group
    facts = [f"{group.kind} group", group.state, counted(len(group.members), "member"), f"lag {details.lag:,}"]
    facts += [f"assignor {group.assignor}"] if group.assignor else []
    print_line(f"{group.group_id}: {', '.join(facts)}, coordinator {group.coordinator_id}")
    if details.partitions:
        clients = {member.member_id: member.client_id for member in group.members}
        columns = [
            Column("topic"),
            Column("partition", True),
            Column("committed", True),
            Column("end", True),
            Column("lag", True),
            Column("client"),
        ]
        rows = [
            (
                one.tp.topic,
                one.tp.partition,
                _known(one.committed.offset if one.committed is not None else None),
                _known(one.end_offset),
                _known(one.lag),
                clients.get(one.member_id or "", "-"),
            )
            for one in details.partitions
        ]
        print_table(columns, rows)
    else:
        print("no offsets are committed")
    if group.members:
        print_table(
            [Column("member"), Column("client"), Column("host"), Column("holds")],
            [
                (member.member_id, member.client_id, member.host, partitions_in_words(member.assignment) or "nothing")
                for member in group.members
            ],
        )


def _known(number: int | None) -> object:
    return "-" if number is None else number


def partitions_in_words(tps: Iterable[TopicPartition]) -> str:
    """``orders 0-2, users 1 4``."""
    return ", ".join(
        f"{topic} {_ranges(sorted(tp.partition for tp in held))}" for topic, held in sorted(topics_of(tps).items())
    )


def _ranges(numbers: Sequence[int]) -> str:
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
