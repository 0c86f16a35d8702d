"""What the cluster looks like: brokers, topics, partitions and who leads them. Plain values, no I/O.

A view is a snapshot. The cache (``Cluster``) keeps what was last heard of each topic, and never goes back to an older
leader epoch of the same topic: a broker that lags behind may answer with one (KIP-320).
"""

from __future__ import annotations

from typing import NamedTuple

from headpond.client.errors import error_code
from headpond.model import NO_LEADER, ErrorCode, TopicPartition
from headpond.protocol.schema.metadata import MetadataResponse
from headpond.protocol.types import ZERO_UUID


class BrokerView(NamedTuple):
    host: str
    port: int
    rack: str | None = None


class PartitionView(NamedTuple):
    # The field is called as in the protocol; nobody calls tuple.index on a partition.
    index: int  # type: ignore[assignment]
    leader: int
    """Its node id; -1: there is none at the moment."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error: ErrorCode = ErrorCode.NONE
    offline_replicas: tuple[int, ...] = ()


class TopicView(NamedTuple):
    name: str
    topic_id: bytes
    error: ErrorCode
    is_internal: bool
    partitions: tuple[PartitionView, ...]
    """In the order of their numbers."""

    def partition(self, index: int) -> PartitionView | None:
        if index < len(self.partitions) and self.partitions[index].index == index:
            return self.partitions[index]
        return next((one for one in self.partitions if one.index == index), None)


class ClusterView(NamedTuple):
    cluster_id: str | None
    controller_id: int
    brokers: dict[int, BrokerView]
    topics: dict[str, TopicView]


class Cluster:
    """The last that was heard of every broker and topic."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = NO_LEADER
        self.brokers: dict[int, BrokerView] = {}
        self._topics: dict[str, TopicView] = {}

    def learn(self, response: MetadataResponse, *, is_whole: bool = False) -> ClusterView:
        """Take an answer in; the view is what it said. ``is_whole``: topics that it does not name are gone."""
        view = view_of(response)
        self.cluster_id, self.controller_id = view.cluster_id, view.controller_id
        if view.brokers:  # an answer of a broker that has just started may name none
            self.brokers = view.brokers
        if is_whole:
            self._topics = {name: topic for name, topic in self._topics.items() if name in view.topics}
        for name, topic in view.topics.items():
            known = self._topics.get(name)
            if topic.error is not ErrorCode.NONE:
                self._topics.pop(name, None)
            elif known is not None and known.topic_id == topic.topic_id:
                self._topics[name] = _newer(known, topic)
            else:
                self._topics[name] = topic
        return view

    def topic(self, name: str) -> TopicView | None:
        return self._topics.get(name)

    def leader(self, tp: TopicPartition) -> PartitionView | None:
        """The partition, if somebody is known to lead it whose address is known too."""
        topic = self._topics.get(tp.topic)
        partition = topic.partition(tp.partition) if topic is not None else None
        return partition if partition is not None and partition.leader in self.brokers else None


def _newer(known: TopicView, heard: TopicView) -> TopicView:
    partitions = []
    for partition in heard.partitions:
        before = known.partition(partition.index)
        is_older = before is not None and before.leader_epoch > partition.leader_epoch >= 0
        partitions.append(before if before is not None and is_older else partition)
    return heard._replace(partitions=tuple(partitions))


def view_of(response: MetadataResponse) -> ClusterView:
    brokers = {one.node_id: BrokerView(one.host, one.port, one.rack) for one in response.brokers}
    topics = [_topic_view(topic) for topic in response.topics]
    return ClusterView(
        response.cluster_id,
        response.controller_id,
        dict(sorted(brokers.items())),
        {topic.name: topic for topic in sorted(topics)},
    )


def _topic_view(topic: MetadataResponse.MetadataResponseTopic) -> TopicView:
    partitions = (
        PartitionView(
            one.partition_index,
            one.leader_id,
            one.leader_epoch,
            tuple(one.replica_nodes),
            tuple(one.isr_nodes),
            error_code(one.error_code),
            tuple(one.offline_replicas),
        )
        for one in topic.partitions
    )
    return TopicView(
        topic.name or "",
        topic.topic_id or ZERO_UUID,
        error_code(topic.error_code),
        topic.is_internal,
        tuple(sorted(partitions, key=lambda one: one.index)),
    )
