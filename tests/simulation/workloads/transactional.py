"""What transactional programs have in common, whichever version of the protocol they speak: a writer with its history,
and a program that writes one transaction after the other, some of which nobody ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple, Protocol

from headpond.client import Client
from headpond.client.errors import ClientError
from headpond.client.group_admin import Groups
from headpond.model import TopicPartition
from headpond.model.ids import id_text
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.record import Record
from simulation.history import FetchOffset, Place, Send
from simulation.site import Site, Topic

TIMEOUTS_MS = (1_500, 4_000)
"""After which the coordinator aborts what nobody ends. Shorter than the pauses of a client that is stopped, and than
what a last look waits for."""
PATIENCE_S = 5.0
"""For one step, retries included."""
PARTITIONS_MAX = 4
RECORDS_MAX = 8


class Row(NamedTuple):
    place: Place
    key: bytes
    value: bytes


class Writer(Protocol):
    """Transactions of one transactional id, one after the other, recorded. Each step says whether it was done; after
    one that was not, the transaction may only be aborted or left alone."""

    async def begin(self) -> bool:
        """A new transaction; whoever has the id loses it, if this writer is new."""

    async def write(self, rows: Sequence[Row]) -> bool: ...

    async def commit_offset(self, group: str, tp: TopicPartition, offset: int) -> bool: ...

    async def end(self, *, is_commit: bool) -> bool: ...

    def vanish(self) -> None:
        """Leave the transaction open, as a process that ends."""


class Batch(NamedTuple):
    """The records of a transaction for one partition, to be sent together."""

    place: Place
    sends: list[Send]
    records: list[Record]

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.place.topic, self.place.partition)

    def encoded(self) -> bytearray:
        return build_batch(self.records)


def begin_batches(
    site: Site, process: str, transaction: str, producer: tuple[int, int], rows: Sequence[Row], *, is_by_id: bool
) -> list[Batch]:
    """Note the sends. ``is_by_id``: the request names the life of the topic."""
    batches: dict[Place, Batch] = {}
    for row in rows:
        topic, partition = row.place.topic, row.place.partition
        timestamp_ms = site.host.clock.now_ms()
        send = Send(
            process=process,
            invoked_s=0,
            topic=topic,
            partition=partition,
            key=row.key,
            value=row.value,
            timestamp_ms=timestamp_ms,
            order=site.next_order(process, topic, partition),
            is_idempotent=True,
            transaction=transaction,
            topic_id=row.place.topic_id if is_by_id else None,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        batch = batches.setdefault(row.place, Batch(row.place, [], []))
        batch.sends.append(site.begin(send))
        batch.records.append(Record(len(batch.records), timestamp_ms, row.key, row.value))
    return list(batches.values())


# --- programs


async def transact(
    site: Site, client: Client, writers: Mapping[str, Writer], topics: Sequence[Topic], group: str
) -> None:
    """Transactions until the run is over, mostly of the first writer. A group's offset goes with some of them."""
    names = list(writers)
    for number in itertools.count(1):
        if site.is_over:
            return
        name = names[0] if site.chance.random() < 0.8 else site.chance.choice(names)
        await _transaction(site, client, writers[name], topics, group, site.life * 10_000 + number)
        if site.chance.random() < 0.1:
            await fetch_offset(site, client, group, OFFSET_OF)
        await site.pause(0.3, 1.0)


OFFSET_OF = TopicPartition("lasting", 0)
"""Whose offset groups commit that consume nothing: any number will do."""


async def _transaction(
    site: Site, client: Client, writer: Writer, topics: Sequence[Topic], group: str, offset: int
) -> None:
    if not await writer.begin():
        writer.vanish()
        return
    is_whole = True
    for _ in range(site.chance.choice((1, 1, 2))):
        rows = await _rows(site, client, topics)
        is_whole = is_whole and bool(rows) and await writer.write(rows)
        if site.chance.random() < 0.1:
            await site.pause(0.5, 5.0)  # its time may be over
    if is_whole and group and site.chance.random() < 0.2:
        is_whole = await writer.commit_offset(group, OFFSET_OF, offset)
    chance = site.chance.random()
    if chance < 0.1:
        writer.vanish()
    else:
        await writer.end(is_commit=is_whole and chance >= 0.4)


async def _rows(site: Site, client: Client, topics: Sequence[Topic]) -> list[Row]:
    wanted = {
        (topic.name, site.chance.randrange(topic.partitions))
        for topic in site.chance.choices(topics, k=site.chance.randrange(1, PARTITIONS_MAX + 1))
    }
    places = await places_of(client, wanted)
    if not places:
        return []
    return [
        Row(site.chance.choice(places), b"k%d" % site.chance.randrange(8), site.unique().encode())
        for _ in range(site.chance.randrange(1, RECORDS_MAX + 1))
    ]


async def places_of(client: Client, wanted: Set[tuple[str, int]]) -> list[Place]:
    """Those of the partitions that exist now."""
    try:
        topics = (await client.metadata(sorted({name for name, _ in wanted}))).topics
    except ClientError:
        return []
    return [
        Place(name, id_text(view.topic_id), partition)
        for name, partition in sorted(wanted)
        if (view := topics.get(name)) is not None and not view.error and partition < len(view.partitions)
    ]


async def fetch_offset(site: Site, client: Client, group: str, tp: TopicPartition) -> int | None:
    """The group's stable offset, -1 where it has none; None: nobody said."""
    fetch = site.begin(
        FetchOffset(
            process=site.process,
            invoked_s=0,
            group=group,
            topic=tp.topic,
            partition=tp.partition,
            requires_stable=True,
        )
    )
    try:
        found = (await Groups(client, timeout_s=PATIENCE_S).offsets(group, require_stable=True)).get(tp)
    except ClientError as error:
        site.lost(fetch, error)
        return None
    fetch.offset = -1 if found is None else found.offset
    site.ok(fetch, is_progress=False)
    return fetch.offset
