"""What a task has to know of the topics that it writes to: how many partitions, and how large a batch may be.

Asked once per task and topic, when the first row for it comes. A topic that does not exist is an error: the sink makes
none.
"""

from __future__ import annotations

from typing import NamedTuple

from headpond.client import Client, ClientError
from headpond.client.admin import Admin, ConfigResource
from headpond.model import ErrorCode
from headpond.model.nearest import did_you_mean
from headpond.spark.kafka.link import Link
from headpond.spark.sink.errors import WrongWrite

MAX_MESSAGE_BYTES = "max.message.bytes"
MAX_MESSAGE_BYTES_DEFAULT = 1_048_588
"""Kafka's; what is assumed where we may not ask."""


class Target(NamedTuple):
    topic: str
    partitions: int
    batch_bytes_max: int


class Targets:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._known: dict[str, Target] = {}

    def get(self, topic: str) -> Target:
        """Raises ``WrongWrite`` for a topic that does not exist."""
        if topic not in self._known:
            try:
                self._known[topic] = self._link.run(lambda client: _ask(client, topic))
            except ClientError as error:
                if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
                    raise
                raise WrongWrite(str(error)) from error
        return self._known[topic]


async def _ask(client: Client, topic: str) -> Target:
    view = (await client.metadata([topic])).topics[topic]
    if view.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        others = list((await client.metadata(None)).topics)
        raise ClientError(view.error, f"topic {topic!r} does not exist{did_you_mean(topic, others)}")
    if view.error is not ErrorCode.NONE:
        raise ClientError(view.error, f"topic {topic!r}: {view.error.name}")
    return Target(topic, len(view.partitions), await _batch_bytes_max(client, topic))


async def _batch_bytes_max(client: Client, topic: str) -> int:
    try:
        entries = await Admin(client).describe_configs(ConfigResource("topic", topic), [MAX_MESSAGE_BYTES])
    except ClientError as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return MAX_MESSAGE_BYTES_DEFAULT
    values = [one.value for one in entries if one.name == MAX_MESSAGE_BYTES and one.value is not None]
    return int(values[0]) if values else MAX_MESSAGE_BYTES_DEFAULT
