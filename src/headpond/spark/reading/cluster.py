"""What the source asks the brokers: which partitions there are, where they begin and end, and where a position lies.

``Offsets`` come back with the ids of their topics. Under read_committed the end of a partition is its last stable
offset: what lies behind it may still be aborted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headpond.client import Client, ClientError, TopicView
from headpond.client.group_admin import Groups
from headpond.client.offsets import EARLIEST, LATEST, Isolation, ListedOffset, list_offsets
from headpond.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition
from headpond.model.nearest import did_you_mean
from headpond.spark.kafka.client_settings import ClientSettings
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.reading.losses import report
from headpond.spark.reading.offsets import Offsets
from headpond.spark.reading.options import SourceOptions, Subscription
from headpond.spark.reading.positions import AtOffsets, AtTimestamps, is_special, specs_of


class FoundPartitions(NamedTuple):
    """The partitions of a subscription, and the ids of their topics."""

    partitions: set[TopicPartition]
    topic_ids: dict[str, bytes]


class UnknownTopics(ClientError):
    """Topics or partitions that the options name and the cluster does not have, even when it is asked again: one that
    was just created is not known everywhere at once."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


async def find_partitions(client: Client, subscription: Subscription, *, is_complete: bool) -> FoundPartitions:
    """``is_complete``: everything that is named must exist (a query that begins), or ``UnknownTopics``; else what is
    missing is left out."""
    if subscription.pattern is not None:
        view = await client.metadata(None)
        topics = [
            topic
            for topic in view.topics.values()
            if subscription.matches(topic.name, is_internal=topic.is_internal) and _exists(topic)
        ]
        return _found(topics)
    wanted = subscription.topics or sorted({tp.topic for tp in subscription.assigned})
    view = await client.metadata(list(wanted))
    topics = [topic for topic in view.topics.values() if _exists(topic)]
    present = {topic.name for topic in topics}
    if is_complete and (missing := [name for name in wanted if name not in present]):
        raise UnknownTopics(await _unknown(client, missing))
    found = _found(topics)
    if not subscription.assigned:
        return found
    assigned = set(subscription.assigned)
    if is_complete and (lacking := sorted(assigned - found.partitions)):
        raise UnknownTopics(f"assign: there is no {' and no '.join(map(str, lacking))}")
    return FoundPartitions(found.partitions & assigned, found.topic_ids)


async def latest_offsets(client: Client, options: SourceOptions, *, is_complete: bool) -> Offsets:
    """The end of every partition that is read."""
    found = await find_partitions(client, options.subscription, is_complete=is_complete)
    ends = await _list(client, dict.fromkeys(found.partitions, LATEST), options.client.isolation)
    return Offsets({tp: one.offset for tp, one in ends.items()}, found.topic_ids)


async def settled_offsets(client: Client, options: SourceOptions, start: Offsets) -> Offsets:
    """The ends, asked for again while one lies before the query's own position: a leader that has just been elected may
    be a moment behind. What stays behind is told by ``source/data_loss.py``."""
    for _ in range(options.client.retries):
        ends = await latest_offsets(client, options, is_complete=False)
        behind = [tp for tp, end in ends.by_partition.items() if end < start.by_partition.get(tp, 0)]
        if not any(start.is_same_topic(tp.topic, ends) for tp in behind):
            return ends
        await client.clock.sleep(max(options.client.retry_interval_s, 0.1))
    return await latest_offsets(client, options, is_complete=False)


async def earliest_offsets(
    client: Client, partitions: Iterable[TopicPartition], settings: ClientSettings
) -> dict[TopicPartition, int]:
    listed = await _list(client, dict.fromkeys(partitions, EARLIEST), settings.isolation)
    return {tp: one.offset for tp, one in listed.items()}


async def resolve_start(client: Client, options: SourceOptions, ends: Offsets) -> Offsets:
    """Where a query begins. ``ends`` stand for latest."""
    partitions = set(ends.by_partition)
    specs = specs_of(options.start, partitions)
    if isinstance(options.start, AtOffsets):
        begins = await earliest_offsets(client, partitions, options.client)
        return _within(options, options.start, specs, begins, ends)
    wanted = {tp: spec for tp, spec in specs.items() if spec != LATEST}
    listed = await _list(client, wanted, options.client.isolation)
    if isinstance(options.start, AtTimestamps):
        _check_times(options.start, listed, specs)
    offsets = {
        tp: listed[tp].offset if tp in listed and listed[tp].offset >= 0 else ends.by_partition[tp] for tp in specs
    }
    # A record that is late enough but not decided yet lies beyond the end: so does the start.
    return Offsets({tp: min(offset, ends.by_partition[tp]) for tp, offset in offsets.items()}, ends.topic_ids)


async def resolve_end(client: Client, options: SourceOptions, ends: Offsets) -> Offsets:
    """Where a batch read ends. A timestamp that no record reaches stands for the end."""
    specs = specs_of(options.end, set(ends.by_partition))
    if isinstance(options.end, AtOffsets):
        begins = dict.fromkeys(specs, 0)
        return _within(options, options.end, specs, begins, ends)
    wanted = {tp: spec for tp, spec in specs.items() if spec != LATEST}
    listed = await _list(client, wanted, options.client.isolation)
    offsets = {
        tp: listed[tp].offset if tp in listed and listed[tp].offset >= 0 else ends.by_partition[tp] for tp in specs
    }
    return Offsets({tp: min(offset, ends.by_partition[tp]) for tp, offset in offsets.items()}, ends.topic_ids)


async def bounds_of_batch(client: Client, options: SourceOptions) -> tuple[Offsets, Offsets]:
    """(start, end) of a batch read, as of one moment."""
    ends = await latest_offsets(client, options, is_complete=True)
    return await resolve_start(client, options, ends), await resolve_end(client, options, ends)


async def commit_group(client: Client, group_id: str, offsets: Mapping[TopicPartition, int]) -> list[str]:
    """What a group is told about how far a query is; complaints, one per partition that was refused."""
    outcomes = await Groups(client).commit(group_id, offsets)
    return [str(error) for error in outcomes.values() if error is not None]


def _within(
    options: SourceOptions,
    position: AtOffsets,
    specs: Mapping[TopicPartition, int],
    begins: Mapping[TopicPartition, int],
    ends: Offsets,
) -> Offsets:
    """Offsets that the user named, in the log: one that is not there is lost data."""
    offsets: dict[TopicPartition, int] = {}
    losses: list[str] = []
    for tp, spec in specs.items():
        begin, end = begins[tp], ends.by_partition[tp]
        if is_special(spec):
            offsets[tp] = begin if spec == EARLIEST else end
            continue
        offsets[tp] = min(max(spec, begin), end)
        if spec < begin:
            losses.append(f"{position.option} of {tp} is {spec}, and the log begins at {begin}")
        elif spec > end:
            losses.append(f"{position.option} of {tp} is {spec}, and the log ends at {end}")
    report(losses, is_failure=options.fail_on_data_loss)
    return Offsets(offsets, ends.topic_ids)


def _check_times(
    start: AtTimestamps, listed: Mapping[TopicPartition, ListedOffset], specs: Mapping[TopicPartition, int]
) -> None:
    late = [tp for tp in sorted(listed) if listed[tp].offset < 0]
    if late and start.no_match == "error":
        raise WrongOption(
            f"{start.option}: {late[0]} has no record at or after {specs[late[0]]}; "
            "set startingOffsetsByTimestampStrategy to latest to begin at the end of such partitions"
        )


async def _list(
    client: Client, specs: Mapping[TopicPartition, int], isolation: Isolation
) -> dict[TopicPartition, ListedOffset]:
    if not specs:
        return {}
    listed = await list_offsets(client, specs, isolation=isolation, timeout_s=client.timeout_s)
    found: dict[TopicPartition, ListedOffset] = {}
    for tp, result in listed.items():
        if isinstance(result, ClientError):
            raise result
        found[tp] = result
    return found


def _exists(topic: TopicView) -> bool:
    """Raises what can't be told apart from a topic that is there."""
    if topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return False
    if topic.error not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        raise ClientError(topic.error, f"topic {topic.name}: {topic.error.name}")
    return True


def _found(topics: Iterable[TopicView]) -> FoundPartitions:
    topics = list(topics)
    partitions = {TopicPartition(topic.name, one.index) for topic in topics for one in topic.partitions}
    return FoundPartitions(
        partitions, {topic.name: topic.topic_id for topic in topics if topic.topic_id != ZERO_TOPIC_ID}
    )


async def _unknown(client: Client, missing: list[str]) -> str:
    known = list((await client.metadata(None)).topics)
    told = [f"topic {name} does not exist{did_you_mean(name, known)}" for name in missing]
    return "; ".join(told)
