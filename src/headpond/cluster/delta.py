"""What one step of the image changed, for those who act on it (logs, replicas, settings)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headpond.cluster.rows import PartitionState
from headpond.model import TopicId


class PartitionChange(NamedTuple):
    """``before`` None: the partition is new; ``after`` None: it is gone, with its topic."""

    topic: str
    topic_id: TopicId
    partition: int
    before: PartitionState | None
    after: PartitionState | None


class Delta(NamedTuple):
    """``partitions`` holds every partition that appeared, changed or went, those of created and deleted topics
    included. What went comes first, so that a topic that was deleted and made anew is handled in that order. Names and
    ids of things that appeared, changed or went are sorted."""

    revision: int
    partitions: tuple[PartitionChange, ...] = ()
    topics_created: tuple[str, ...] = ()
    topics_deleted: tuple[tuple[str, TopicId], ...] = ()
    topic_configs: tuple[str, ...] = ()
    broker_configs: tuple[int | None, ...] = ()
    brokers: tuple[int, ...] = ()
    features: tuple[str, ...] = ()

    def pieces(self, partitions_max: int) -> Iterator[Delta]:
        """The same in pieces of so many partitions; the last one has everything else."""
        *first, last = range(0, len(self.partitions) or 1, partitions_max)
        for at in first:
            yield Delta(self.revision, self.partitions[at : at + partitions_max])
        yield self._replace(partitions=self.partitions[last:])
