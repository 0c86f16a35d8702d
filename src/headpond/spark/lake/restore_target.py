"""The topics that a restore writes to: looked at, created where they are missing, refused where they don't fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headpond.client import Client
from headpond.client.admin import Admin, ConfigResource
from headpond.client.offsets import EARLIEST, LATEST, list_offsets
from headpond.model import ErrorCode, TopicPartition
from headpond.model.ids import id_text
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.state import TopicState

KEPT = {"retention.ms": "-1"}
"""Records of a lake may be older than any retention: a broker would delete them as soon as they are written."""
TRIES_MAX = 50
PAUSE_S = 0.1


class Target(NamedTuple):
    name: str
    exists: bool
    topic_id: str
    partitions: int
    records: int
    """About: the offsets that the topic holds."""
    is_stamped_by_broker: bool


async def look_at(client: Client, name: str) -> Target:
    view = (await client.metadata([name])).topics[name]
    if view.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Target(name, False, "", 0, 0, False)
    if view.error is not ErrorCode.NONE:
        raise LakeError(f"topic {name}: {view.error.name}")
    tps = [TopicPartition(name, one.index) for one in view.partitions]
    bounds = []
    for spec in (EARLIEST, LATEST):
        listed = await list_offsets(
            client, dict.fromkeys(tps, spec), isolation="read_uncommitted", timeout_s=client.timeout_s
        )
        offsets = []
        for found in listed.values():
            if isinstance(found, Exception):
                raise found
            offsets.append(found.offset)
        bounds.append(sum(offsets))
    entries = await Admin(client).describe_configs(ConfigResource("topic", name), ["message.timestamp.type"])
    is_stamped = any(one.value == "LogAppendTime" for one in entries)
    return Target(name, True, id_text(view.topic_id), len(tps), bounds[1] - bounds[0], is_stamped)


def partitions_needed(lake: TopicState) -> int:
    return max(lake.partitions, default=0) + 1


def check(target: Target, lake: TopicState, *, is_resumed: bool, may_append: bool) -> None:
    """``LakeError`` where the records would not be what they were, or would mix with others."""
    if not target.exists:
        return
    needed = partitions_needed(lake)
    if target.partitions < needed:
        raise LakeError(
            f"topic {target.name} has {target.partitions} partitions, and {lake.topic} in the lake has {needed}: "
            f"`headpond topics alter {target.name} --partitions {needed}` adds some, or --as names another topic"
        )
    if target.is_stamped_by_broker:
        raise LakeError(
            f"topic {target.name} stamps records with its own time (message.timestamp.type=LogAppendTime): "
            "timestamps would not be kept"
        )
    if target.records and not is_resumed and not may_append:
        raise LakeError(
            f"topic {target.name} has records already: --as names another topic, --append writes behind them"
        )


async def create(client: Client, name: str, partitions: int, configs: Mapping[str, str]) -> Target:
    await Admin(client).create_topic(name, partitions, configs={**KEPT, **configs})
    for _ in range(TRIES_MAX):
        view = (await client.metadata([name])).topics[name]
        if view.error is ErrorCode.NONE and all(one.leader >= 0 for one in view.partitions):
            break
        await client.clock.sleep(PAUSE_S)  # other brokers hear of it in a moment
    return await look_at(client, name)
