"""Topics, configs and offsets, as an administrator asks for them.

Methods in the singular raise what went wrong; those that take several give a result or an error for each. What changes
nothing is repeated when a connection breaks; a change is sent once, and ``RequestTimedOut`` or ``ConnectionLost`` then
mean that its outcome is unknown. Changes go to the controller where the cluster names one that we can reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from headpond.client.client import Client
from headpond.client.errors import ClientError, error_code, raise_for, refusal
from headpond.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Isolation, ListedOffset, list_offsets
from headpond.client.routing import ask_leaders, topics_of
from headpond.client.waiting import JitteredBackoff
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.create_partitions import CreatePartitionsRequest
from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.delete_records import DeleteRecordsRequest
from headpond.protocol.schema.delete_topics import DeleteTopicsRequest
from headpond.protocol.schema.describe_configs import DescribeConfigsRequest
from headpond.protocol.schema.describe_log_dirs import DescribeLogDirsRequest
from headpond.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsRequest
from headpond.protocol.types import Message

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Admin",
    "ConfigEntry",
    "ConfigResource",
    "ListedOffset",
    "LogDir",
    "NewTopic",
    "ReplicaSize",
]

DELETE_BY_NAME_VERSION_MAX = 5
RESOURCE_TYPES = {"topic": 2, "broker": 4, "broker_logger": 8}
CONFIG_SOURCES = {
    1: "dynamic topic",
    2: "dynamic broker",
    3: "dynamic default",
    4: "static",
    5: "default",
    6: "dynamic logger",
}
CONFIG_TYPES = ("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")
SET, DELETE, APPEND, SUBTRACT = range(4)


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int = -1
    """-1: the broker's default."""
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Brokers by partition, instead of the two numbers."""


class ConfigResource(NamedTuple):
    kind: Literal["topic", "broker", "broker_logger"]
    name: str
    """The topic, or the broker's id; "" is the default of all brokers."""


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: str
    """Where the value comes from: see ``CONFIG_SOURCES``."""
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    type: str
    synonyms: tuple[tuple[str, str | None, str], ...] = ()
    """(name, value, source) of everything that the value could come from, the first in force."""
    documentation: str | None = None


class ReplicaSize(NamedTuple):
    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDir(NamedTuple):
    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    replicas: dict[TopicPartition, ReplicaSize]


class Admin:
    def __init__(self, client: Client, *, timeout_s: float | None = None) -> None:
        self.client = client
        self.timeout_s = client.timeout_s if timeout_s is None else timeout_s

    # ---- topics

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        topic = NewTopic(name, partitions, replication_factor, dict(configs or {}))
        _raise((await self.create_topics([topic], validate_only=validate_only))[name])

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> dict[str, ClientError | None]:
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics], timeout_ms=self._timeout_ms, validate_only=validate_only
        )
        response = await self._change(request, lambda response: response.topics)
        return {one.name: _outcome(one, f"topic {one.name}") for one in response.topics}

    async def delete_topics(self, names: Sequence[str]) -> dict[str, ClientError | None]:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=self._timeout_ms)
        response = await self._change(
            request, lambda response: response.responses, version_max=DELETE_BY_NAME_VERSION_MAX
        )
        return {one.name: _outcome(one, f"topic {one.name}") for one in response.responses}

    async def create_partitions(self, topic: str, total_count: int, *, validate_only: bool = False) -> None:
        """Raise the number of partitions to ``total_count``."""
        wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=total_count, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=self._timeout_ms, validate_only=validate_only)
        response = await self._change(request, lambda response: response.results)
        for one in response.results:
            _raise(_outcome(one, f"topic {one.name}"))

    # ---- configs

    async def describe_configs(
        self,
        resource: ConfigResource,
        names: Sequence[str] | None = None,
        *,
        with_synonyms: bool = False,
        with_documentation: bool = False,
    ) -> list[ConfigEntry]:
        wanted = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=RESOURCE_TYPES[resource.kind],
            resource_name=resource.name,
            configuration_keys=None if names is None else list(names),
        )
        request = DescribeConfigsRequest(
            resources=[wanted], include_synonyms=with_synonyms, include_documentation=with_documentation
        )
        response = await self.client.ask(request, self.timeout_s, node_id=_node_of(resource))
        (result,) = response.results
        _raise(_outcome(result, _called(resource)))
        return [_config_entry(one) for one in result.configs]

    async def alter_configs(
        self,
        resource: ConfigResource,
        set: Mapping[str, str] | None = None,
        delete: Collection[str] = (),
        *,
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Set these, return those to their defaults (``delete``), add to and take from lists; the rest stays."""
        changes: list[tuple[int, str, str | None]] = [
            *((SET, name, value) for name, value in (set or {}).items()),
            *((DELETE, name, None) for name in delete),
            *((APPEND, name, value) for name, value in (append or {}).items()),
            *((SUBTRACT, name, value) for name, value in (subtract or {}).items()),
        ]
        altered = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=RESOURCE_TYPES[resource.kind],
            resource_name=resource.name,
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=operation, value=value)
                for operation, name, value in changes
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[altered], validate_only=validate_only)
        response = await self._change(request, lambda response: response.responses, node_id=_node_of(resource))
        for one in response.responses:
            _raise(_outcome(one, _called(resource)))

    # ---- offsets

    async def list_offsets(
        self, specs: Mapping[TopicPartition, int], *, isolation: Isolation = "read_uncommitted"
    ) -> dict[TopicPartition, ListedOffset]:
        """For each partition the offset of ``EARLIEST``, ``LATEST`` (one after the last), ``MAX_TIMESTAMP`` or of the
        first record at or after a time in ms (offset -1: there is none). Raises the first failure."""
        results = await self.list_offsets_or_errors(specs, isolation=isolation)
        return {tp: _result(result) for tp, result in results.items()}

    async def list_offsets_or_errors(
        self, specs: Mapping[TopicPartition, int], *, isolation: Isolation = "read_uncommitted"
    ) -> dict[TopicPartition, ListedOffset | ClientError]:
        return await list_offsets(self.client, specs, isolation=isolation, timeout_s=self.timeout_s)

    async def delete_records(self, before_offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Drop what is before these offsets (-1: everything); the new log starts. Raises the first failure."""
        results = await ask_leaders(self.client, before_offsets, self._delete_records, self.timeout_s)
        return {tp: _result(result) for tp, result in results.items()}

    async def _delete_records(
        self, node_id: int, part: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int | ClientError]:
        topics = [
            DeleteRecordsRequest.DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsRequest.DeleteRecordsPartition(partition_index=tp.partition, offset=part[tp])
                    for tp in partitions
                ],
            )
            for name, partitions in topics_of(part).items()
        ]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=self._timeout_ms)
        response = await self.client.request(request, node_id, self.timeout_s)
        return {
            tp: _outcome(one, str(tp)) or one.low_watermark
            for topic in response.topics
            for one in topic.partitions
            for tp in [TopicPartition(topic.name, one.partition_index)]
        }

    # ---- the cluster

    async def describe_log_dirs(
        self, brokers: Sequence[int] | None = None, topics: Mapping[str, Sequence[int]] | None = None
    ) -> dict[int, list[LogDir]]:
        """The log folders of these brokers (None: all), with the sizes of these topics' partitions (None: all)."""
        if brokers is None:
            brokers = sorted((await self.client.metadata([], self.timeout_s)).brokers)
        wanted = None
        if topics is not None:
            wanted = [
                DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=list(partitions))
                for name, partitions in topics.items()
            ]
        request = DescribeLogDirsRequest(topics=wanted)
        answers = await asyncio.gather(
            *(self.client.ask(request, self.timeout_s, node_id=node_id) for node_id in brokers)
        )
        for node_id, answer in zip(brokers, answers, strict=True):
            raise_for(answer.error_code, f"log folders of broker {node_id}")
        return {
            node_id: [_log_dir(one) for one in answer.results] for node_id, answer in zip(brokers, answers, strict=True)
        }

    # ---- helpers

    @property
    def _timeout_ms(self) -> int:
        return int(self.timeout_s * 1_000)

    async def _change(
        self, request: Message, results_of: Any, *, node_id: int | None = None, version_max: int | None = None
    ) -> Any:
        """Send a change, again only where the broker said that it did nothing because it is not the controller."""
        until_s = self.client.clock.monotonic() + self.timeout_s
        backoff = JitteredBackoff(self.client.random)
        target = node_id if node_id is not None else await self.client.controller_id()
        while True:
            left_s = until_s - self.client.clock.monotonic()
            response = await self.client.request(request, target, left_s, version_max=version_max)
            pause_s = backoff.next_s()
            was_refused = all(one.error_code == ErrorCode.NOT_CONTROLLER for one in results_of(response))
            if not (results_of(response) and was_refused) or self.client.clock.monotonic() + pause_s >= until_s:
                return response
            await self.client.clock.sleep(pause_s)
            await self.client.metadata([])
            target = node_id if node_id is not None else await self.client.controller_id()


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignments else topic.partitions,
        replication_factor=-1 if topic.assignments else topic.replication_factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(broker_ids))
            for index, broker_ids in sorted(topic.assignments.items())
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _outcome(result: Any, what: str) -> ClientError | None:
    if result.error_code == 0:
        return None
    return refusal(result.error_code, what, getattr(result, "error_message", None))


def _raise(error: ClientError | None) -> None:
    if error is not None:
        raise error


def _result(result: Any) -> Any:
    if isinstance(result, ClientError):
        raise result
    return result


def _node_of(resource: ConfigResource) -> int | None:
    """A broker's own settings are known to that broker only."""
    return int(resource.name) if resource.kind != "topic" and resource.name else None


def _called(resource: ConfigResource) -> str:
    return f"{resource.kind} {resource.name or '(default)'}"


def _config_entry(one: Any) -> ConfigEntry:
    return ConfigEntry(
        one.name,
        one.value,
        CONFIG_SOURCES.get(one.config_source, "unknown"),
        one.config_source == 5,
        one.read_only,
        one.is_sensitive,
        CONFIG_TYPES[one.config_type] if 0 <= one.config_type < len(CONFIG_TYPES) else "unknown",
        tuple((synonym.name, synonym.value, CONFIG_SOURCES.get(synonym.source, "unknown")) for synonym in one.synonyms),
        one.documentation or None,
    )


def _log_dir(one: Any) -> LogDir:
    replicas = {
        TopicPartition(topic.name, partition.partition_index): ReplicaSize(
            partition.partition_size, partition.offset_lag, partition.is_future_key
        )
        for topic in one.topics
        for partition in topic.partitions
    }
    return LogDir(one.log_dir, error_code(one.error_code), one.total_bytes, one.usable_bytes, replicas)
