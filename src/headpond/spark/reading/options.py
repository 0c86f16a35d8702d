"""The options of a read, parsed once: names and meaning as in Spark's Kafka connector.

    options = parse_options({"kafka.bootstrap.servers": "...", "subscribe": "orders"}, is_stream=True)

Raises ``WrongOption`` for a name that does not exist (with the nearest one that does), a value that means nothing, or
options that contradict each other. Values of secrets are never in a message, nor in the repr of an object made here.

Unlike the connector: ``kafka.isolation.level`` is read_committed unless said otherwise, and unknown names are refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from headpond.client.offsets import EARLIEST, ISOLATION_LEVELS, LATEST, Isolation
from headpond.model import TopicPartition
from headpond.spark.kafka import option_names as names
from headpond.spark.kafka.client_settings import ClientSettings, read_bootstrap
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.kafka.given_options import Given
from headpond.spark.kafka.option_values import (
    INT_MAX,
    read_assignment,
    read_duration_ms,
    read_names,
    read_offsets,
    read_timestamps,
    read_truth,
    read_whole_number,
)
from headpond.spark.reading.positions import AtOffsets, AtTimestamps, Everywhere, NoMatch, Position

_log = logging.getLogger("headpond.spark")


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which partitions are read: exactly one of the three is given."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()
    with_internal_topics: bool = False

    def matches(self, topic: str, *, is_internal: bool) -> bool:
        """Whether ``pattern`` takes a topic in."""
        assert self.pattern is not None
        return (self.with_internal_topics or not is_internal) and re.fullmatch(self.pattern, topic) is not None


@dataclass(frozen=True, slots=True)
class Rate:
    """How much a micro-batch may take, and should at least have."""

    offsets_max: int | None = None
    offsets_min: int | None = None
    delay_ms_max: int = 15 * 60_000


@dataclass(frozen=True, slots=True)
class SourceOptions:
    client: ClientSettings
    subscription: Subscription
    start: Position
    end: Position
    rate: Rate = field(default_factory=Rate)
    partitions_min: int | None = None
    records_per_partition_max: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id: str | None = None


def parse_options(given: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    options = Given(given, names.READING)
    if is_stream:
        options.refuse(names.ENDINGS, "a stream has no end: only batch reads take it")
    elif ignored := [name for name in names.RATES if options.get(name) is not None]:
        _log.warning("%s: without effect in a batch read", ", ".join(ignored))
    return SourceOptions(
        client=_client(options),
        subscription=_subscription(options),
        start=_start(options, is_stream=is_stream),
        end=_end(options),
        rate=_rate(options),
        partitions_min=options.number(names.MIN_PARTITIONS, at_least=1, at_most=INT_MAX),
        records_per_partition_max=options.number(names.MAX_RECORDS_PER_PARTITION, at_least=1),
        fail_on_data_loss=options.truth(names.FAIL_ON_DATA_LOSS, True),
        include_headers=options.truth(names.INCLUDE_HEADERS, False),
        group_id=_group_id(options),
    )


def parse_include_headers(given: Mapping[str, str]) -> bool:
    """The one option that the columns depend on, for whoever asks before it is known what is read, or whether: a table
    that is only written to has columns, too."""
    return Given(given, names.READING_OR_WRITING).truth(names.INCLUDE_HEADERS, False)


# --- the groups of options --------------------------------------------------------------------------------------------


def _client(options: Given) -> ClientSettings:
    bootstrap = read_bootstrap(options)
    defaults = ClientSettings(bootstrap)
    isolation = _isolation(options)

    def number(setting: str, default: int, *, at_least: int = 1) -> int:
        found = options.setting(setting)
        name = names.KAFKA + setting
        return default if found is None else read_whole_number(name, found, at_least=at_least, at_most=INT_MAX)

    check_crcs = options.setting(names.CHECK_CRCS)
    poll_timeout_ms = options.number(names.POLL_TIMEOUT, at_least=1)
    retries = options.number(names.FETCH_OFFSET_RETRIES, at_least=0)
    interval_ms = options.number(names.FETCH_OFFSET_RETRY_INTERVAL, at_least=0)
    return ClientSettings(
        bootstrap,
        client_id=options.setting(names.CLIENT_ID) or defaults.client_id,
        isolation=isolation,
        api_timeout_s=number(names.API_TIMEOUT, int(defaults.api_timeout_s * 1_000)) / 1_000,
        poll_timeout_s=defaults.poll_timeout_s if poll_timeout_ms is None else poll_timeout_ms / 1_000,
        retries=defaults.retries if retries is None else retries,
        retry_interval_s=defaults.retry_interval_s if interval_ms is None else interval_ms / 1_000,
        partition_fetch_bytes=number(names.MAX_PARTITION_FETCH_BYTES, defaults.partition_fetch_bytes),
        fetch_bytes=number(names.FETCH_MAX_BYTES, defaults.fetch_bytes),
        fetch_wait_ms=number(names.FETCH_MAX_WAIT, defaults.fetch_wait_ms, at_least=0),
        fetch_min_bytes=number(names.FETCH_MIN_BYTES, defaults.fetch_min_bytes, at_least=0),
        check_crcs=True if check_crcs is None else read_truth(names.KAFKA + names.CHECK_CRCS, check_crcs),
        security=options.security(),
    )


def _isolation(options: Given) -> Isolation:
    text = options.setting(names.ISOLATION_LEVEL) or "read_committed"
    for level in ISOLATION_LEVELS:
        if text.strip().lower() == level:
            return level
    raise WrongOption(f"kafka.isolation.level: {text!r} is neither read_committed nor read_uncommitted")


def _subscription(options: Given) -> Subscription:
    given = [name for name in names.STRATEGIES if options.get(name) is not None]
    if not given:
        raise WrongOption("what is to be read? Give one of subscribe, subscribePattern or assign")
    if len(given) > 1:
        raise WrongOption(f"{' and '.join(given)} contradict each other: give one of them")
    (strategy,) = given
    text = options.get(strategy) or ""
    if strategy == names.SUBSCRIBE:
        return Subscription(topics=read_names(strategy, text))
    if strategy == names.ASSIGN:
        return Subscription(assigned=read_assignment(strategy, text))
    pattern = text.strip()
    if not pattern:
        raise WrongOption("subscribePattern is empty")
    try:
        re.compile(pattern)
    except re.error as error:
        raise WrongOption(f"subscribePattern: {pattern!r} is no regular expression: {error}") from None
    excluded = options.setting(names.EXCLUDE_INTERNAL_TOPICS)
    is_excluding = excluded is None or read_truth(names.KAFKA + names.EXCLUDE_INTERNAL_TOPICS, excluded)
    return Subscription(pattern=pattern, with_internal_topics=not is_excluding)


def _start(options: Given, *, is_stream: bool) -> Position:
    in_time = _timestamps(options, names.STARTING_TIMESTAMP, names.STARTING_OFFSETS_BY_TIMESTAMP)
    if in_time is not None:
        return in_time
    default = Everywhere(LATEST if is_stream else EARLIEST)
    position = _offsets(options, names.STARTING_OFFSETS) or default
    if not is_stream:
        _forbid(position, LATEST, "latest", "a batch read that begins at the end reads nothing")
    return position


def _end(options: Given) -> Position:
    in_time = _timestamps(options, names.ENDING_TIMESTAMP, names.ENDING_OFFSETS_BY_TIMESTAMP)
    if in_time is not None:
        return in_time
    position = _offsets(options, names.ENDING_OFFSETS) or Everywhere(LATEST, names.ENDING_OFFSETS)
    _forbid(position, EARLIEST, "earliest", "a read that ends at the beginning reads nothing")
    return position


def _timestamps(options: Given, for_all: str, for_each: str) -> AtTimestamps | None:
    """The timestamp for all goes before the timestamps for each; both go before offsets."""
    no_match = _no_match(options)
    if (text := options.get(for_all)) is not None:
        return AtTimestamps(for_all, everywhere_ms=read_whole_number(for_all, text, at_least=0), no_match=no_match)
    if (text := options.get(for_each)) is not None:
        return AtTimestamps(for_each, by_partition_ms=read_timestamps(for_each, text), no_match=no_match)
    return None


def _no_match(options: Given) -> NoMatch:
    text = (options.get(names.STARTING_STRATEGY) or "error").strip().lower()
    for one in get_args(NoMatch):
        if text == one:
            return one
    raise WrongOption(f"{names.STARTING_STRATEGY}: {text!r} is neither error nor latest")


def _offsets(options: Given, name: str) -> Everywhere | AtOffsets | None:
    text = options.get(name)
    if text is None:
        return None
    for word, spec in (("earliest", EARLIEST), ("latest", LATEST)):
        if text.strip().lower() == word:
            return Everywhere(spec, name)
    if not text.strip().startswith("{"):
        raise WrongOption(f'{name}: {text!r} is neither earliest, nor latest, nor JSON as {{"topic": {{"0": 23}}}}')
    return AtOffsets(read_offsets(name, text), name)


def _forbid(position: Position, spec: int, word: str, why: str) -> None:
    if isinstance(position, Everywhere) and position.spec == spec:
        raise WrongOption(f"{position.option} can't be {word}: {why}")
    if isinstance(position, AtOffsets):
        for tp, offset in position.offsets.items():
            if offset == spec:
                raise WrongOption(f"{position.option}: {tp} can't be {spec}, which is {word}: {why}")


def _rate(options: Given) -> Rate:
    offsets_max = options.number(names.MAX_OFFSETS_PER_TRIGGER, at_least=1)
    offsets_min = options.number(names.MIN_OFFSETS_PER_TRIGGER, at_least=1)
    if offsets_max is not None and offsets_min is not None and offsets_min > offsets_max:
        raise WrongOption(
            f"{names.MIN_OFFSETS_PER_TRIGGER} ({offsets_min}) is above {names.MAX_OFFSETS_PER_TRIGGER} ({offsets_max})"
        )
    delay = options.get(names.MAX_TRIGGER_DELAY)
    delay_ms = Rate().delay_ms_max if delay is None else read_duration_ms(names.MAX_TRIGGER_DELAY, delay)
    return Rate(offsets_max, offsets_min, delay_ms)


def _group_id(options: Given) -> str | None:
    """``groupIdPrefix`` names the connector's throw-away groups; we have none, so that it is accepted and idle."""
    group_id = options.setting(names.GROUP_ID)
    if group_id is not None and not group_id.strip():
        raise WrongOption("kafka.group.id is empty")
    return group_id
