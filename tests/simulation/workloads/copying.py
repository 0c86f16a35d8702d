"""Consume, transform, produce: two programs with one transactional id copy a topic into another, each record once.

A copy's transaction has the copied records and the group's offset behind them. Each program takes the id, then asks for
the group's offset, then reads: what it is told can change only by its own commits, since whoever takes the id next
fences it. Programs speak either version of the protocol, a new one after each failure. A third one fills the source,
with aborted transactions among the others.

The key of a copy says what it is a copy of, for T8.
"""

from __future__ import annotations

import asyncio
import itertools

from headpond.client import Client, ClientError
from headpond.client.offsets import EARLIEST, list_offsets
from headpond.model import ErrorCode, TopicPartition
from simulation.checkers.evidence.copies import copy_key, copy_value
from simulation.history import Place, Poll, Seen
from simulation.site import Site
from simulation.workloads.consumers import fetch_once
from simulation.workloads.transactional import Row, Writer, fetch_offset, places_of, transact
from simulation.workloads.transactions import WriterV1
from simulation.workloads.transactions_v2 import WriterV2

SOURCE, TARGET = "source", "target"
GROUP = "copiers"
WAIT_MS = 50
RECORDS_MAX = 20


async def copy(site: Site) -> None:
    sessions = itertools.count(1)
    await asyncio.gather(_copier(site, "one", sessions), _copier(site, "other", sessions), _feeder(site))


async def _feeder(site: Site) -> None:
    async with site.client() as client:
        writer = _new_writer(site, client, f"{site.name}-feeder", "feeder", is_progress=False)
        await transact(site, client, {"": writer}, site.topics_where(lambda topic: topic.name == SOURCE), "")


async def _copier(site: Site, program: str, sessions: itertools.count[int]) -> None:
    async with site.client() as client:
        writer = _new_writer(site, client, site.name, program)
        while not site.is_over:
            if not await _copy_some(site, client, writer, next(sessions)):
                writer.vanish()
                writer = _new_writer(site, client, site.name, program)
            await site.pause(0.5, 1.5)


def _new_writer(site: Site, client: Client, transactional_id: str, program: str, *, is_progress: bool = True) -> Writer:
    kind = site.chance.choice((WriterV1, WriterV2))
    return kind(site, client, transactional_id, program, is_progress=is_progress)


async def _copy_some(site: Site, client: Client, writer: Writer, session: int) -> bool:
    """One transaction; False: the writer is of no use any more, or is to vanish."""
    (source,) = site.topics_where(lambda topic: topic.name == SOURCE)
    places = await places_of(client, {(SOURCE, site.chance.randrange(source.partitions)), (TARGET, 0)})
    if len(places) < 2 or not await writer.begin():
        return False
    place, target = places
    tp = TopicPartition(SOURCE, place.partition)
    offset = await fetch_offset(site, client, GROUP, tp)
    if offset is None:
        return False
    poll = await _read(site, client, place, max(0, offset), session)
    if poll.outcome != "ok":
        return False
    seen = poll.records[:RECORDS_MAX]
    if not seen:
        return True
    next_offset = poll.next_position if len(seen) == len(poll.records) else seen[-1].offset + 1
    if site.chance.random() < 0.2:
        await site.pause(0.1, 3.0)  # the other one may take over meanwhile, and this one be a zombie
    is_whole = await writer.write([_copied(site, place, target, each) for each in seen])
    is_whole = is_whole and await writer.commit_offset(GROUP, tp, next_offset)
    chance = site.chance.random()
    if chance < 0.1:
        return False
    return await writer.end(is_commit=is_whole and chance >= 0.25)


async def _read(site: Site, client: Client, place: Place, offset: int, session: int) -> Poll:
    """The first poll with records, or up to the end: there may be many aborted ones before them. An administrator may
    have removed what the group has not read yet."""
    position = offset
    while True:
        poll = await fetch_once(site, client, place, "read_committed", position, session, WAIT_MS)
        if poll.error == ErrorCode.OFFSET_OUT_OF_RANGE and position == offset:
            position = await _log_start(client, TopicPartition(place.topic, place.partition))
            if position <= offset:
                return poll
        elif poll.outcome != "ok" or poll.records or poll.next_position == position:
            return poll
        else:
            position = poll.next_position


async def _log_start(client: Client, tp: TopicPartition) -> int:
    """-1: nobody said."""
    try:
        found = (await list_offsets(client, {tp: EARLIEST}, isolation="read_committed", timeout_s=client.timeout_s))[tp]
    except ClientError:
        return -1
    return -1 if isinstance(found, ClientError) else found.offset


def _copied(site: Site, source: Place, target: Place, seen: Seen) -> Row:
    return Row(target, copy_key(GROUP, source, seen.offset), copy_value(site.unique(), seen.value))
