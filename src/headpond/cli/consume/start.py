"""Where to start reading each partition: the options of ``consume`` turned into offsets."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from headpond.cli.common.connection import check_partitions
from headpond.cli.common.failures import CommandFailed
from headpond.cli.common.output import note
from headpond.client import Client, TopicView
from headpond.client.admin import EARLIEST, LATEST, Admin
from headpond.client.offsets import Isolation
from headpond.model import TopicPartition


class Plan(NamedTuple):
    """``ends``: where each partition ended when we asked; without ``--follow`` we read up to there."""

    starts: dict[TopicPartition, int]
    ends: dict[TopicPartition, int]

    @property
    def waiting(self) -> int:
        """Offsets between start and end: at least as many as there are records."""
        return sum(max(0, self.ends[tp] - start) for tp, start in self.starts.items())


async def plan(client: Client, topic: TopicView, options: argparse.Namespace) -> Plan:
    wanted = options.partition or [partition.index for partition in topic.partitions]
    check_partitions(topic, wanted)
    tps = [TopicPartition(topic.name, number) for number in sorted(set(wanted))]
    isolation: Isolation = "read_uncommitted" if options.uncommitted else "read_committed"
    admin = Admin(client)
    firsts = {tp: each.offset for tp, each in (await admin.list_offsets(dict.fromkeys(tps, EARLIEST))).items()}
    listed = await admin.list_offsets(dict.fromkeys(tps, LATEST), isolation=isolation)
    ends = {tp: each.offset for tp, each in listed.items()}
    if options.timestamp is not None:
        found = await admin.list_offsets(dict.fromkeys(tps, options.timestamp), isolation=isolation)
        return Plan({tp: each.offset if each.offset >= 0 else ends[tp] for tp, each in found.items()}, ends)
    is_latest = options.offset == "latest" or (options.follow and not options.from_beginning and options.offset is None)
    if is_latest:
        return Plan(dict(ends), ends)
    if not isinstance(options.offset, int):
        return Plan(firsts, ends)
    if options.offset < 0:
        return Plan({tp: max(firsts[tp], ends[tp] + options.offset) for tp in tps}, ends)
    return Plan({tp: _checked(tp, options, firsts[tp], ends[tp]) for tp in tps}, ends)


def _checked(tp: TopicPartition, options: argparse.Namespace, first: int, end: int) -> int:
    offset: int = options.offset
    if offset > end and options.partition:
        raise CommandFailed(f"{tp} ends at offset {end}: there is no offset {offset} yet")
    if offset < first:
        note(f"headpond: {tp} begins at offset {first}: what was before is deleted")
    return min(max(offset, first), end)
