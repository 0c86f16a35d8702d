"""What is asked of the broker before Spark starts: it takes a moment, and Spark takes ten seconds to say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headpond.client import Client, ClientError
from headpond.client.admin import Admin, ConfigResource
from headpond.client.group_admin import Groups
from headpond.client.offsets import EARLIEST
from headpond.model import ErrorCode, TopicPartition
from headpond.model.nearest import did_you_mean
from headpond.spark.kafka.client_settings import ClientSettings
from headpond.spark.kafka.errors import DataLost, WrongOption
from headpond.spark.kafka.link import Link
from headpond.spark.kafka.option_values import INT_MAX
from headpond.spark.pipeline.checks import reads
from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.mistakes import Place
from headpond.spark.pipeline.model import Pipeline, Source
from headpond.spark.pipeline.options import client_options, read_options
from headpond.spark.reading.cluster import UnknownTopics, earliest_offsets, latest_offsets, resolve_start
from headpond.spark.reading.offsets import Document, Offsets, read_document
from headpond.spark.reading.options import SourceOptions, parse_options
from headpond.spark.reading.positions import Everywhere

MAX_MESSAGE_BYTES = "max.message.bytes"
MAX_MESSAGE_BYTES_DEFAULT = 1_048_588
"""Kafka's."""
LETTER_HEADERS_BYTES = 64 * 1024
"""What a dead letter has beside the record: its reason, and where it was."""

Starts = dict[str, Document]
"""Source -> topic -> partition -> offset."""


class NewTopic(NamedTuple):
    name: str
    partitions: int | None
    """None: as the broker thinks."""
    configs: dict[str, str]


class Survey(NamedTuple):
    waiting: int
    """Records that the first sink has not read yet, as far as the group knows."""
    new_topics: list[NewTopic]
    starts: Starts
    """Where sources that don't begin at the earliest offsets began, for the folder to keep."""
    letters_from: Starts
    """The same as it is now: partitions that came later are in, and offsets that are gone are not."""


def survey(pipeline: Pipeline, bootstrap: str, timeout_s: float, known_starts: Starts | None) -> Survey:
    """Raises ``RunFailed`` where a topic is missing, ``ClientError`` where the broker is. ``known_starts``: of runs
    before; None if this is the first."""
    with Link(settings_for(pipeline, bootstrap, timeout_s)) as link:
        waiting = sum(
            link.once(lambda client, one=source: _waiting(client, pipeline, one, bootstrap))  # type: ignore[misc]
            for source in pipeline.sources
        )
        new_topics = link.once(lambda client: _new_topics(client, pipeline))
        starts, letters_from = link.once(lambda client: _starts(client, pipeline, bootstrap, known_starts))
        return Survey(waiting, new_topics, starts, letters_from)


def create_topics(pipeline: Pipeline, bootstrap: str, timeout_s: float, topics: list[NewTopic]) -> None:
    if not topics:
        return

    async def create(client: Client) -> None:
        for topic in topics:
            try:
                await Admin(client).create_topic(topic.name, topic.partitions or -1, configs=topic.configs)
            except ClientError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

    with Link(settings_for(pipeline, bootstrap, timeout_s)) as link:
        link.once(create)


def lag_of(settings: ClientSettings, group: str) -> dict[TopicPartition, int]:
    """How far a group is behind, by partition."""

    async def ask(client: Client) -> dict[TopicPartition, int]:
        committed = await Groups(client).offsets(group)
        if not committed:
            return {}
        ends = await Admin(client).list_offsets_or_errors(dict.fromkeys(committed, -1), isolation="read_committed")
        return {
            tp: max(0, end.offset - committed[tp].offset)
            for tp, end in ends.items()
            if not isinstance(end, ClientError)
        }

    with Link(settings) as link:
        return link.once(ask)


def settings_for(pipeline: Pipeline, bootstrap: str, timeout_s: float) -> ClientSettings:
    given = {**client_options(pipeline, bootstrap), "kafka.default.api.timeout.ms": str(int(timeout_s * 1_000))}
    return parse_options(given, is_stream=False).client


async def _waiting(client: Client, pipeline: Pipeline, source: Source, bootstrap: str) -> int:
    options = parse_options(read_options(pipeline, source, bootstrap), is_stream=source.is_stream)
    try:
        ends = (await latest_offsets(client, options, is_complete=True)).by_partition
    except UnknownTopics as error:
        raise RunFailed(f"{source.place}: source {source.name}: {error}") from None
    if source.pattern is not None and not ends:
        raise RunFailed(f"{source.place}: source {source.name}: no topic has a name that {source.pattern!r} matches")
    if not source.is_stream:
        return 0
    return sum((await _behind(client, pipeline.name, options, ends)).values())


async def _starts(client: Client, pipeline: Pipeline, bootstrap: str, known: Starts | None) -> tuple[Starts, Starts]:
    """Asked before the queries start, so that dead letters begin where the first sink begins, or before; also when they
    are asked for only later: what a sink passes over must not be passed over by both."""
    starts: Starts = {}
    letters_from: Starts = {}
    for source in pipeline.sources:
        if not source.is_stream or (known is not None and source.name not in known):
            continue
        options = parse_options(read_options(pipeline, source, bootstrap), is_stream=True)
        if isinstance(options.start, Everywhere) and options.start.spec == EARLIEST:
            continue
        ends = await latest_offsets(client, options, is_complete=True)
        try:
            start = await resolve_start(client, options, ends) if known is None else read_document(known[source.name])
        except (DataLost, WrongOption) as error:
            raise RunFailed(f"{source.place}: source {source.name}: {error}") from None
        assert start is not None
        begins = await earliest_offsets(client, ends.by_partition, options.client)
        starts[source.name] = start.document()
        letters_from[source.name] = Offsets(_moved(start, begins, ends)).document()
    return starts, letters_from


def _moved(start: Offsets, begins: Mapping[TopicPartition, int], ends: Offsets) -> dict[TopicPartition, int]:
    moved = {}
    for tp, end in ends.by_partition.items():
        known = start.get(tp) if start.is_same_topic(tp.topic, ends) else None
        moved[tp] = begins[tp] if known is None else min(end, max(begins[tp], known))
    return moved


async def _behind(
    client: Client, group: str, options: SourceOptions, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    committed = await Groups(client).offsets(group)
    fresh = [tp for tp in ends if tp not in committed]
    begins = await earliest_offsets(client, fresh, options.client)
    done = {tp: committed[tp].offset if tp in committed else begins[tp] for tp in ends}
    return {tp: max(0, end - done[tp]) for tp, end in ends.items()}


async def _new_topics(client: Client, pipeline: Pipeline) -> list[NewTopic]:
    """The topics to create; ``RunFailed`` for one that is missing and not declared to be created."""
    wanted: list[tuple[str, int | None, Place | None, str]] = [
        (sink.target, sink.topic_partitions, sink.place, sink.name) for sink in pipeline.sinks if sink.kind == "topic"
    ]
    if pipeline.bad_records.are_kept:
        wanted.append((pipeline.bad_records.topic, None, None, ""))
    known = (await client.metadata([name for name, *_ in wanted])).topics if wanted else {}
    new: list[NewTopic] = []
    for name, partitions, place, sink in wanted:
        topic = known.get(name)
        if topic is not None and topic.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        if partitions is None and place is not None:
            hint = did_you_mean(name, (await client.metadata(None)).topics)
            raise RunFailed(
                f"{place}: sink {sink}: topic {name} does not exist{hint}: "
                "create it, or say how many partitions it is to get"
            )
        if name not in [one.name for one in new]:
            configs = {} if place is not None else {MAX_MESSAGE_BYTES: str(await _letter_bytes_max(client, pipeline))}
            new.append(NewTopic(name, partitions, configs))
    return new


async def _letter_bytes_max(client: Client, pipeline: Pipeline) -> int:
    """Room for the largest record that a source can have, with what is told of it: one that did not fit would stop the
    pipeline for good."""
    known = (await client.metadata(None)).topics
    largest = MAX_MESSAGE_BYTES_DEFAULT
    for name in sorted(known):
        if any(reads(source, name) for source in pipeline.sources):
            try:
                entries = await Admin(client).describe_configs(ConfigResource("topic", name), [MAX_MESSAGE_BYTES])
            except ClientError as error:
                if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise
                continue  # the usual size is what we may assume
            largest = max([largest, *(int(one.value) for one in entries if one.value)])
    return min(largest + LETTER_HEADERS_BYTES, INT_MAX)
