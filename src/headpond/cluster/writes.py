"""What a plan means as operations on the store. Pure. The order of the keys of something too large for one transaction
is argued in ``metadata_writer``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headpond.cluster import keys
from headpond.cluster.image import MetadataImage, TopicImage
from headpond.cluster.names import may_clash
from headpond.cluster.rows import NameRow, PartitionState, TopicRow, encode
from headpond.cluster.topics import PlannedTopic
from headpond.model import TopicId
from headpond.model.ids import id_text
from headpond.ports import Compare, Delete, Put


def partition_puts(topic_id: TopicId, states: Iterable[PartitionState], *, first: int = 0) -> list[Put]:
    return [Put(keys.partition(topic_id, index), encode(state)) for index, state in enumerate(states, start=first)]


def partition_deletes(topic_id: TopicId, indexes: Iterable[int]) -> list[Put | Delete]:
    return [Delete(keys.partition(topic_id, index)) for index in indexes]


def topic_id_put(topic: PlannedTopic) -> Put:
    return Put(keys.topic_id(topic.topic_id), encode(NameRow(topic.name)))


def topic_put(name: str, topic_id: TopicId, partitions: int) -> Put:
    return Put(keys.topic(name), encode(TopicRow(id_text(topic_id), partitions)))


def topic_puts(topic: PlannedTopic) -> list[Put | Delete]:
    """The commit point of a new topic, and what must appear together with it."""
    puts: list[Put | Delete] = [topic_put(topic.name, topic.topic_id, len(topic.partitions))]
    if may_clash(topic.name):
        puts.append(Put(keys.topic_clash(topic.name), encode(NameRow(topic.name))))
    if topic.configs:
        puts.append(Put(keys.config("topic", topic.name), encode(dict(sorted(topic.configs.items())))))
    return puts


def topic_is_new(name: str) -> list[Compare]:
    compares = [Compare(keys.topic(name), 0)]
    if may_clash(name):
        compares.append(Compare(keys.topic_clash(name), 0))
    return compares


def topic_deletes(topic: TopicImage) -> list[Put | Delete]:
    """Everything but the partitions. The overrides go even if the image knows none: somebody may be writing some
    now."""
    deletes: list[Put | Delete] = [
        Delete(keys.topic(topic.name)),
        Delete(keys.topic_id(topic.topic_id)),
        Delete(keys.config("topic", topic.name)),
    ]
    if may_clash(topic.name):
        deletes.append(Delete(keys.topic_clash(topic.name)))
    return deletes


def loose_transaction(
    image: MetadataImage, topic_id: TopicId, indexes: Sequence[int]
) -> tuple[list[Compare], list[Put | Delete]]:
    """Sweep loose partitions, and fence whoever may be writing them: a creation compares the topic-id key, an
    enlargement the topic key, so that one goes and this one is written anew, unchanged."""
    deletes = partition_deletes(topic_id, indexes)
    name = image.topic_names.get(topic_id)
    if name is not None:
        topic = image.topics[name]
        return [Compare(keys.topic(name), topic.revision)], [topic_put(name, topic_id, len(topic.partitions)), *deletes]
    key = keys.topic_id(topic_id)
    revision = image.key_revision(key)
    return [Compare(key, revision)], [*([Delete(key)] if revision else []), *deletes]
