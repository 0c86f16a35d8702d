"""Planning of topics: what to write for a request, or why not. Pure functions of the image; errors and their order are
Kafka's. Nothing here touches the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headpond.cluster.image import MetadataImage, TopicImage
from headpond.cluster.names import check_name
from headpond.cluster.placement import Candidate, place
from headpond.cluster.rows import PartitionState
from headpond.config.broker import TopicDefaults
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.ports import Random

PARTITIONS_PER_REQUEST_MAX = 10_000
"""Kafka's own limit of one administrative operation."""

DEFAULT = -1

ValidateTopicConfigs = Callable[[Mapping[str, str | None]], None]
"""Raises ``BrokerError(INVALID_CONFIG, message)``."""


class Assignment(NamedTuple):
    partition: int
    broker_ids: tuple[int, ...]


class NewTopic(NamedTuple):
    """``partitions`` and ``replication_factor`` of -1: the broker's default, or what ``assignments`` say."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: tuple[Assignment, ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


class MorePartitions(NamedTuple):
    """Enlarge a topic to ``total`` partitions; ``assignments`` are the replicas of the new ones, in order."""

    name: str
    total: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class PlannedTopic(NamedTuple):
    name: str
    topic_id: TopicId
    partitions: tuple[PartitionState, ...]
    configs: Mapping[str, str]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


class PlannedPartitions(NamedTuple):
    topic: TopicImage
    added: tuple[PartitionState, ...]


def plan_topic(
    image: MetadataImage,
    topic: NewTopic,
    topic_id: TopicId,
    *,
    defaults: TopicDefaults,
    validate_configs: ValidateTopicConfigs,
    random: Random,
) -> PlannedTopic:
    _check_new_name(image, topic.name)
    configs = _checked_configs(topic.configs, validate_configs)
    replicas = _assigned(image, topic) if topic.assignments else _placed(image, topic, defaults, random)
    return PlannedTopic(topic.name, topic_id, _states(image, replicas), configs)


def check_adoption(image: MetadataImage, topic: PlannedTopic, validate_configs: ValidateTopicConfigs) -> None:
    """Whether a topic that exists elsewhere may become one of ours; ``BrokerError`` if not."""
    _check_new_name(image, topic.name)
    if topic.topic_id in image.topic_names:
        other = image.topic_names[topic.topic_id]
        raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Its topic id is that of the topic '{other}'.")
    check_partition_count(len(topic.partitions))
    validate_configs(topic.configs)


def plan_partitions(image: MetadataImage, wanted: MorePartitions, *, random: Random) -> PlannedPartitions:
    topic = existing_topic(image, wanted.name)
    have = len(topic.partitions)
    if wanted.total == have:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if wanted.total < have:
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {wanted.name} currently has {have} partition(s); {wanted.total} would not be an increase.",
        )
    more = wanted.total - have
    replication_factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        check_partition_count(more)
        replicas = place(candidates(image), partitions=more, replication_factor=replication_factor, random=random)
        return PlannedPartitions(topic, _states(image, replicas))
    if len(wanted.assignments) != more:
        raise BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but only {len(wanted.assignments)} assignment(s) were "
            "specified.",
        )
    check_partition_count(more)
    for number, broker_ids in enumerate(wanted.assignments):
        _check_assignment(image, have + number, broker_ids, replication_factor)
    return PlannedPartitions(topic, _states(image, wanted.assignments))


def existing_topic(image: MetadataImage, name: str) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def candidates(image: MetadataImage) -> list[Candidate]:
    return [Candidate(broker.id, broker.rack, broker.fenced) for broker in image.brokers.values()]


def check_partition_count(count: int) -> None:
    if count > PARTITIONS_PER_REQUEST_MAX:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _check_new_name(image: MetadataImage, name: str) -> None:
    check_name(name)
    if name in image.topics:
        raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    clashing = image.clashing_topic(name)
    if clashing is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {clashing}")


def _checked_configs(
    configs: Sequence[tuple[str, str | None]], validate_configs: ValidateTopicConfigs
) -> Mapping[str, str]:
    missing = [name for name, value in configs if value is None]
    if missing:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}")
    given = {name: value for name, value in configs if value is not None}
    if given:
        validate_configs(given)
    return given


def _assigned(image: MetadataImage, topic: NewTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != DEFAULT:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.partitions != DEFAULT:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    check_partition_count(len(topic.assignments))
    replicas: dict[int, tuple[int, ...]] = {}
    replication_factor: int | None = None
    for partition, broker_ids in topic.assignments:
        if partition in replicas:
            raise _bad_assignment(f"Found multiple manual partition assignments for partition {partition}")
        _check_assignment(image, partition, broker_ids, replication_factor)
        replication_factor = len(broker_ids)
        replicas[partition] = broker_ids
    if sorted(replicas) != list(range(len(replicas))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [replicas[partition] for partition in range(len(replicas))]


def _check_assignment(
    image: MetadataImage, partition: int, broker_ids: Sequence[int], replication_factor: int | None
) -> None:
    if not broker_ids:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(broker_ids):
        if broker_id not in image.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id == previous:
            raise _bad_assignment(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if replication_factor is not None and len(broker_ids) != replication_factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    if all(image.brokers[broker_id].fenced for broker_id in broker_ids):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
            "controlled shutdown."
        )


def _placed(image: MetadataImage, topic: NewTopic, defaults: TopicDefaults, random: Random) -> list[tuple[int, ...]]:
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        raise BrokerError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.partitions < DEFAULT or topic.partitions == 0:
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    partitions = defaults.partitions if topic.partitions == DEFAULT else topic.partitions
    factor = defaults.replication_factor if topic.replication_factor == DEFAULT else topic.replication_factor
    check_partition_count(partitions)
    try:
        return place(candidates(image), partitions=partitions, replication_factor=factor, random=random)
    except BrokerError as error:
        raise BrokerError(error.code, f"Unable to replicate the partition {factor} time(s): {error.message}") from error


def _states(image: MetadataImage, replicas: Sequence[tuple[int, ...]]) -> tuple[PartitionState, ...]:
    states: dict[tuple[int, ...], PartitionState] = {}
    for broker_ids in set(replicas):
        isr = tuple(broker_id for broker_id in broker_ids if not image.brokers[broker_id].fenced)
        states[broker_ids] = PartitionState(
            leader=isr[0], leader_epoch=0, partition_epoch=0, replicas=tuple(broker_ids), isr=isr
        )
    return tuple(states[broker_ids] for broker_ids in replicas)


def _bad_assignment(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
