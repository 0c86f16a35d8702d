"""``headpond groups reset-offsets``: where a group shall go on, shown first and done with ``--execute``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from headpond.cli.common.connection import check_partitions, find_topic, sentence
from headpond.cli.common.failures import OK, CommandFailed, counted
from headpond.cli.common.output import Column, note, print_json, print_line, print_table
from headpond.cli.groups.show import unknown_group
from headpond.client import Client
from headpond.client.admin import EARLIEST, LATEST, Admin
from headpond.client.group_admin import GroupOffset, Groups
from headpond.model import ErrorCode, TopicPartition

LEFT_ALONE = "its members would not notice, and commit over it: stop them first"


class Move(NamedTuple):
    tp: TopicPartition
    committed_offset: int | None
    """None: nothing was committed."""
    new_offset: int


async def reset(client: Client, options: argparse.Namespace) -> int:
    groups = Groups(client)
    name: str = options.name
    await _check_empty(groups, name)
    committed = await groups.offsets(name)
    tps = await _wanted(client, groups, committed, options)
    moves = await _plan(client, tps, committed, options)
    if options.execute:
        await _check_empty(groups, name)  # somebody may have come while we asked
        outcomes = await groups.commit(name, {move.tp: move.new_offset for move in moves})
        failed = [error for error in outcomes.values() if error is not None]
        if any(error.code is ErrorCode.UNKNOWN_MEMBER_ID for error in failed):
            raise CommandFailed(f"group {name} has members now, nothing was changed; {LEFT_ALONE}")
        if failed:
            raise CommandFailed("; ".join(map(sentence, failed)))
    if options.json:
        print_json(_document(name, moves, is_executed=options.execute))
        return OK
    _print(moves)
    if options.execute:
        print_line(f"moved group {name} in {counted(len(moves), 'partition')}")
    else:
        note("nothing was changed: --execute does it")
    return OK


async def _check_empty(groups: Groups, name: str) -> None:
    group = await groups.describe(name)
    if group is not None and not group.is_empty:
        who = counted(len(group.members), "member")
        raise CommandFailed(f"group {name} has {who} and is {group.state}; {LEFT_ALONE}")
    if group is None:
        listed = {each.group_id: each.kind for each in await groups.all()}
        if name in listed:
            raise CommandFailed(await unknown_group(groups, [name]))


async def _wanted(
    client: Client, groups: Groups, committed: Mapping[TopicPartition, GroupOffset], options: argparse.Namespace
) -> list[TopicPartition]:
    if options.all_topics:
        if not committed:
            if await groups.describe(options.name) is None:
                raise CommandFailed(await unknown_group(groups, [options.name]))
            raise CommandFailed(f"group {options.name} has no committed offsets: name the topics with --topic")
        gone: dict[str, None] = {}
        found = []
        topics = (await client.metadata(sorted({tp.topic for tp in committed}))).topics
        for tp in committed:
            topic = topics.get(tp.topic)
            if topic is None or topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                gone[tp.topic] = None
            else:
                found.append(tp)
        for name in gone:
            note(f"headpond: topic {name} does not exist any more, it is left out")
        if not found:
            raise CommandFailed(f"none of the topics that group {options.name} has offsets for exists any more")
        return found
    chosen: dict[TopicPartition, None] = {}
    for name, partitions in options.topic:
        topic = await find_topic(client, name)
        numbers = [partition.index for partition in topic.partitions] if partitions is None else partitions
        check_partitions(topic, numbers)
        chosen.update((TopicPartition(name, number), None) for number in numbers)
    return sorted(chosen)


async def _plan(
    client: Client,
    tps: list[TopicPartition],
    committed: Mapping[TopicPartition, GroupOffset],
    options: argparse.Namespace,
) -> list[Move]:
    admin = Admin(client)
    starts = {tp: each.offset for tp, each in (await admin.list_offsets(dict.fromkeys(tps, EARLIEST))).items()}
    ends = {tp: each.offset for tp, each in (await admin.list_offsets(dict.fromkeys(tps, LATEST))).items()}
    if options.to_earliest:
        wanted = starts
    elif options.to_latest:
        wanted = ends
    elif options.to_timestamp is not None:
        found = await admin.list_offsets(dict.fromkeys(tps, options.to_timestamp))
        wanted = {tp: found[tp].offset if found[tp].offset >= 0 else ends[tp] for tp in tps}
    elif options.to_offset is not None:
        wanted = dict.fromkeys(tps, options.to_offset)
    else:
        without = [str(tp) for tp in tps if tp not in committed]
        if without:
            raise CommandFailed(f"there is no committed offset to shift for {', '.join(without)}")
        wanted = {tp: committed[tp].offset + options.shift_by for tp in tps}
    moves = []
    for tp in tps:
        offset = min(max(wanted[tp], starts[tp]), ends[tp])
        if offset != wanted[tp]:
            note(f"headpond: {tp} has offsets {starts[tp]} to {ends[tp]}, not {wanted[tp]}: {offset} is the nearest")
        moves.append(Move(tp, committed[tp].offset if tp in committed else None, offset))
    return moves


def _document(name: str, moves: list[Move], *, is_executed: bool) -> dict[str, object]:
    return {
        "group": name,
        "executed": is_executed,
        "partitions": [
            {
                "topic": move.tp.topic,
                "partition": move.tp.partition,
                "committed_offset": move.committed_offset,
                "new_offset": move.new_offset,
            }
            for move in moves
        ],
    }


def _print(moves: list[Move]) -> None:
    columns = [Column("topic"), Column("partition", True), Column("from", True), Column("to", True)]
    rows = [
        (
            move.tp.topic,
            move.tp.partition,
            "-" if move.committed_offset is None else move.committed_offset,
            move.new_offset,
        )
        for move in moves
    ]
    print_table(columns, rows)
