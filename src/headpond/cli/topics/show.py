"""``headpond topics list`` and ``describe``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from headpond.cli.common.connection import unknown_topic
from headpond.cli.common.failures import OK, CommandFailed, counted
from headpond.cli.common.output import Column, bytes_in_words, print_json, print_line, print_table
from headpond.cli.common.progress import Progress
from headpond.client import Client, ClientError, PartitionView, TopicView
from headpond.client.admin import EARLIEST, LATEST, Admin, ConfigEntry, ConfigResource
from headpond.model import ErrorCode, TopicPartition


async def show_list(client: Client, options: argparse.Namespace) -> int:
    view = await client.metadata(None)
    topics = [topic for topic in view.topics.values() if options.internal or not topic.is_internal]
    if options.json:
        print_json([_summary(topic) for topic in topics])
    elif not topics:
        print("there are no topics yet; `headpond topics create NAME` makes one")
    else:
        rows = [(topic.name, len(topic.partitions), _replicas(topic)) for topic in topics]
        print_table([Column("topic"), Column("partitions", True), Column("replicas", True)], rows)
    return OK


def _summary(topic: TopicView) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": _id_text(topic.topic_id),
        "partitions": len(topic.partitions),
        "replicas": _replicas(topic),
        "internal": topic.is_internal,
    }


def _replicas(topic: TopicView) -> int:
    return max((len(partition.replicas) for partition in topic.partitions), default=0)


def _id_text(topic_id: bytes) -> str | None:
    from headpond.model.ids import id_text

    return id_text(topic_id) if any(topic_id) else None


# --- describe ---------------------------------------------------------------------------------------------------------


class Details(NamedTuple):
    topic: TopicView
    offsets: dict[int, tuple[int | None, int | None]]
    """By partition: where it starts and ends; None where nobody could say."""
    sizes: dict[int, int]
    configs: list[ConfigEntry]


async def show_details(client: Client, options: argparse.Namespace) -> int:
    topics = await _wanted(client, options.names)
    details: list[Details] = []
    with Progress("asking about topics", len(topics), clock=client.clock) as bar:
        for topic in topics:
            details.append(await _details(client, topic))
            bar.advance(1)
    if options.json:
        print_json([_document(each) for each in details])
    elif not details:
        print("there are no topics yet; `headpond topics create NAME` makes one")
    for number, each in enumerate(details if not options.json else ()):
        if number:
            print()
        _print(each)
    return OK


async def _wanted(client: Client, names: Sequence[str]) -> list[TopicView]:
    view = await client.metadata(names or None)
    if not names:
        return [topic for topic in view.topics.values() if not topic.is_internal]
    unknown = [name for name in names if name not in view.topics or view.topics[name].error is not ErrorCode.NONE]
    if unknown:
        raise CommandFailed(await unknown_topic(client, unknown))
    return [view.topics[name] for name in dict.fromkeys(names)]


async def _details(client: Client, topic: TopicView) -> Details:
    admin = Admin(client)
    led = [partition for partition in topic.partitions if partition.leader >= 0]
    tps = [TopicPartition(topic.name, partition.index) for partition in led]
    starts = await admin.list_offsets_or_errors(dict.fromkeys(tps, EARLIEST))
    ends = await admin.list_offsets_or_errors(dict.fromkeys(tps, LATEST))
    offsets = {tp.partition: (_offset(starts.get(tp)), _offset(ends.get(tp))) for tp in tps}
    configs = await admin.describe_configs(ConfigResource("topic", topic.name))
    return Details(topic, offsets, await _sizes(admin, topic.name, led), [one for one in configs if not one.is_default])


def _offset(listed: Any) -> int | None:
    return None if listed is None or isinstance(listed, ClientError) else int(listed.offset)


async def _sizes(admin: Admin, name: str, led: Sequence[PartitionView]) -> dict[int, int]:
    """Of each partition's copy at its leader; nothing where a broker does not tell."""
    leaders = sorted({partition.leader for partition in led})
    try:
        folders = await admin.describe_log_dirs(leaders, {name: [partition.index for partition in led]})
    except ClientError:
        return {}
    sizes: dict[int, int] = {}
    for partition in led:
        for folder in folders.get(partition.leader, ()):
            replica = folder.replicas.get(TopicPartition(name, partition.index))
            if replica is not None and not replica.is_future:
                sizes[partition.index] = replica.size_bytes
    return sizes


def _document(details: Details) -> dict[str, Any]:
    partitions = [
        {
            "partition": partition.index,
            "leader": partition.leader if partition.leader >= 0 else None,
            "leader_epoch": partition.leader_epoch,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "start_offset": details.offsets.get(partition.index, (None, None))[0],
            "end_offset": details.offsets.get(partition.index, (None, None))[1],
            "size_bytes": details.sizes.get(partition.index),
        }
        for partition in details.topic.partitions
    ]
    configs = [{"name": one.name, "value": one.value, "source": one.source} for one in details.configs]
    return {**_summary(details.topic), "partitions": partitions, "configs": configs}


def _print(details: Details) -> None:
    topic = details.topic
    print_line(
        f"{topic.name}: {counted(len(topic.partitions), 'partition')}, {counted(_replicas(topic), 'replica')} each, "
        f"id {_id_text(topic.topic_id) or 'unknown'}{', internal' if topic.is_internal else ''}"
    )
    columns = [
        Column("partition", True),
        Column("leader", True),
        Column("replicas"),
        Column("in sync"),
        Column("start", True),
        Column("end", True),
        Column("size", True),
    ]
    rows = []
    for partition in topic.partitions:
        size_bytes = details.sizes.get(partition.index)
        leader = str(partition.leader) if partition.leader >= 0 else "none"
        start, end = details.offsets.get(partition.index, (None, None))
        size = None if size_bytes is None else bytes_in_words(size_bytes)
        rows.append((partition.index, leader, _nodes(partition.replicas), _nodes(partition.isr), start, end, size))
    print_table(columns, rows)
    if details.configs:
        titles = [Column("setting"), Column("value"), Column("from")]
        print_table(titles, [(one.name, one.value, one.source) for one in details.configs])
    else:
        print("every setting has its default")


def _nodes(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
