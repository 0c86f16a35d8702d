"""Consumers without a group: they poll partitions from the start or from a time, in both isolation levels."""

from __future__ import annotations

from headpond.client import Client, ClientError
from headpond.client.fetched import cut_batches
from headpond.client.offsets import ISOLATION_LEVELS, list_offsets
from headpond.model import ErrorCode, TopicPartition
from headpond.model.ids import parse_id
from headpond.protocol.schema.fetch import FetchRequest
from simulation.history import Isolation, Place, Poll, Search, Seen
from simulation.site import Site, place_of

WAIT_MS = 300


async def consume(site: Site) -> None:
    sessions = 0
    async with site.client() as client:
        while not site.is_over:
            sessions += 1
            topic = site.chance.choice(site.topics)
            place = await place_of(client, topic.name, site.chance.randrange(topic.partitions))
            if place is not None:
                isolation: Isolation = site.chance.choice(("read_uncommitted", "read_committed"))
                position = await _start(site, client, place, isolation)
                await _read_on(site, client, place, isolation, position, sessions)
            await site.pause(0.05, 0.3)


async def _start(site: Site, client: Client, place: Place, isolation: Isolation) -> int:
    if site.chance.random() < 0.5:
        return 0
    tp = TopicPartition(place.topic, place.partition)
    timestamp_ms = site.host.clock.now_ms() - site.chance.randrange(10_000)
    search = site.begin(
        Search(process=site.process, invoked_s=0, place=place, timestamp_ms=timestamp_ms, isolation=isolation)
    )
    try:
        found = (await list_offsets(client, {tp: timestamp_ms}, isolation=isolation, timeout_s=client.timeout_s))[tp]
    except ClientError as error:
        found = error
    if isinstance(found, ClientError):
        site.lost(search, found)
        return 0
    after = await place_of(client, place.topic, place.partition)
    if after != place:
        search.outcome = "unknown"  # it may be another life of the topic that answered
        return 0
    search.offset, search.found_timestamp_ms = found.offset, found.timestamp_ms
    site.ok(search)
    return max(0, found.offset)


async def _read_on(site: Site, client: Client, place: Place, isolation: Isolation, position: int, session: int) -> None:
    for _ in range(site.chance.randrange(3, 25)):
        if site.is_over:
            return
        poll = await fetch_once(site, client, place, isolation, position, session)
        if poll.outcome != "ok":
            if poll.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                return
            await site.pause(0.1, 0.3)
        else:
            position = poll.next_position
            if site.chance.random() < 0.2:
                await site.pause(0.0, 0.5)


async def fetch_once(
    site: Site, client: Client, place: Place, isolation: Isolation, position: int, session: int, wait_ms: int = WAIT_MS
) -> Poll:
    """One Fetch of one partition, by topic id, recorded."""
    poll = site.begin(
        Poll(process=site.process, invoked_s=0, place=place, isolation=isolation, position=position, session=session)
    )
    wanted = FetchRequest.FetchPartition(
        partition=place.partition, fetch_offset=position, partition_max_bytes=site.chance.choice((100, 2_000, 1 << 20))
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=ISOLATION_LEVELS[isolation],
        topics=[FetchRequest.FetchTopic(topic=place.topic, topic_id=parse_id(place.topic_id), partitions=[wanted])],
    )
    answer = await site.once([poll], client.request(request))
    if answer is None:
        return poll
    if answer.error_code or not answer.responses:
        site.refused(poll, answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
        return poll
    told = answer.responses[0].partitions[0]
    if told.error_code:
        site.refused(poll, told.error_code)
        return poll
    cut = cut_batches(
        TopicPartition(place.topic, place.partition),
        told,
        from_offset=position,
        is_read_committed=isolation == "read_committed",
    )
    records = [record for batch in cut.batches for record in batch.records]
    poll.records = tuple(Seen(each.offset, each.timestamp_ms, each.key, each.value) for each in records)
    poll.next_position = cut.next_offset
    poll.high_watermark = told.high_watermark
    poll.last_stable_offset = told.last_stable_offset
    poll.log_start_offset = told.log_start_offset
    site.ok(poll)
    return poll
