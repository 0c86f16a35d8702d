"""The internal topic of a coordinator: made when somebody first asks for a coordinator, and the key to who it is.

Kafka answers the first question with COORDINATOR_NOT_AVAILABLE while it makes the topic; here the asker waits the few
milliseconds. A crash in between leaves no topic, or all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from headpond.cluster.image import MetadataImage
from headpond.cluster.metadata_writer import MetadataWriter
from headpond.cluster.topics import NewTopic
from headpond.coordination.partition import partition_for
from headpond.model import BrokerError, ErrorCode
from headpond.ports import Clock

log = logging.getLogger(__name__)

CREATION_TIMEOUT_MS = 5_000
CREATION_PAUSE_S = 1.0
"""After a failure nobody tries for this long: clients ask again and again."""


class TopicShape(NamedTuple):
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class CoordinatorTopic:
    def __init__(
        self,
        name: str,
        shape: Callable[[], TopicShape],
        *,
        image: MetadataImage,
        metadata_writer: MetadataWriter,
        clock: Clock,
    ) -> None:
        """``shape`` is called when the topic is made."""
        self.name = name
        self._shape = shape
        self._image = image
        self._metadata_writer = metadata_writer
        self._clock = clock
        self._retry_s = 0.0

    @property
    def partition_count(self) -> int | None:
        """None: it does not exist."""
        topic = self._image.topics.get(self.name)
        return None if topic is None else len(topic.partitions)

    async def leader_for(self, key: str) -> int | None:
        """The broker that coordinates ``key``; None: nobody does now."""
        if self.partition_count is None:
            await self._create()
        count = self.partition_count
        if count is None:
            return None
        state = self._image.partition(self.name, partition_for(key, count))
        if state is None or state.leader not in self._image.brokers:
            return None
        return state.leader

    async def _create(self) -> None:
        if self._clock.monotonic() < self._retry_s:
            return
        up = sum(not broker.fenced for broker in self._image.brokers.values())
        shape = self._shape()
        topic = NewTopic(
            self.name,
            shape.partitions,
            min(shape.replication_factor, max(1, up)),
            (),
            tuple(sorted(shape.configs.items())),
        )
        try:
            await self._metadata_writer.create_topic(topic, timeout_ms=CREATION_TIMEOUT_MS)
        except BrokerError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                self._retry_s = self._clock.monotonic() + CREATION_PAUSE_S
                log.warning("the internal topic %s can't be made: %s", self.name, error)
