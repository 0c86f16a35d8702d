"""Several brokers change the same topics at once, on a store that loses answers and stalls: what was answered holds."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from headpond.cluster.image import MetadataImage
from headpond.cluster.topics import MorePartitions, NewTopic
from headpond.model import BrokerError, ErrorCode
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from unit.cluster.small_cluster import SmallCluster, simulate

NAMES = ["a", "b.c", "b_c"]
TIMEOUT_MS = 3_000


class History:
    """What was answered: ids known to exist until somebody tries to delete them, and ids known to be gone."""

    def __init__(self) -> None:
        self.created: dict[bytes, str] = {}
        self.doubtful: set[bytes] = set()
        self.gone: set[bytes] = set()
        self.partitions_least: dict[bytes, int] = {}
        self.answers = 0


async def one_client(cluster: SmallCluster, draw: random.Random, history: History, ids: set[bytes]) -> None:
    for _ in range(12):
        await cluster.clock.sleep(draw.random() * 0.02)
        fault = draw.randrange(6)
        if fault == 0:
            cluster.store.lose_next_answer("done")
        elif fault == 1:
            cluster.store.lose_next_answer("not done")
        elif fault == 2:
            cluster.store.stall_watches(True)
            cluster.clock.call_later(draw.random() * 2, lambda: cluster.store.stall_watches(False))
        await one_change(cluster, draw, history, ids)


async def one_change(cluster: SmallCluster, draw: random.Random, history: History, ids: set[bytes]) -> None:
    metadata_writer, name = cluster.metadata_writer, draw.choice(NAMES)
    known = cluster.image.topics.get(name)
    kind = draw.choice(["create", "delete", "enlarge", "configs"])
    try:
        if kind == "create":
            planned = await metadata_writer.create_topic(
                NewTopic(name, draw.choice([1, 3, 200]), 1), timeout_ms=TIMEOUT_MS
            )
            assert planned.topic_id not in ids, "an id was used twice"
            ids.add(planned.topic_id)
            history.created[planned.topic_id] = name
        elif kind == "delete" and known is not None:
            history.doubtful.add(known.topic_id)
            await metadata_writer.delete_topic(known.topic_id, timeout_ms=TIMEOUT_MS)
            history.gone.add(known.topic_id)
        elif kind == "enlarge" and known is not None:
            total = len(known.partitions) + draw.choice([1, 150])
            await metadata_writer.create_partitions(MorePartitions(name, total), timeout_ms=TIMEOUT_MS)
            now = cluster.image.topics.get(name)
            if now is not None and now.topic_id == known.topic_id:
                history.partitions_least[known.topic_id] = total
        elif kind == "configs":
            change = {"retention.ms": str(draw.randrange(9))}
            await metadata_writer.alter_configs("topic", name, lambda now: {**now, **change}, timeout_ms=TIMEOUT_MS)
        history.answers += 1
    except BrokerError as error:
        assert error.code in {
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.INVALID_PARTITIONS,
            ErrorCode.REQUEST_TIMED_OUT,
        }


def visible(image: MetadataImage) -> dict[str, Any]:
    return {name: (topic, dict(image.topic_configs(name))) for name, topic in image.topics.items()}


@pytest.mark.parametrize("seed", range(25))
def test_what_was_answered_holds_and_all_brokers_see_the_same(seed: int) -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        draw, history, ids = random.Random(seed), History(), set[bytes]()
        brokers = [await SmallCluster(server, clock, broker_id=n).start() for n in (1, 2)]
        for broker in brokers:
            broker.random._random.seed(seed * 10 + broker.metadata_writer.broker_id)
        await asyncio.gather(
            *(one_client(broker, random.Random(draw.random()), history, ids) for broker in brokers for _ in range(2))
        )
        last = await SmallCluster(server, clock, broker_id=3).start()  # its start sweeps what is half-made
        for broker in brokers:
            broker.store.stall_watches(False)
            await broker.follower.wait_for(server.revision, timeout_s=10)
            assert visible(broker.image) == visible(last.image)
        image = last.image
        assert history.answers > 0
        assert not image.loose
        for topic_id, name in history.created.items():
            if topic_id not in history.doubtful:
                assert image.topics[name].topic_id == topic_id
        for topic_id in history.gone:
            assert topic_id not in image.topic_names
        for topic_id, total in history.partitions_least.items():
            if topic_id in image.topic_names:
                assert len(image.topics[image.topic_names[topic_id]].partitions) >= total
        assert not {"b.c", "b_c"} <= image.topics.keys()
        kept = sum(len(topic.partitions) for topic in image.topics.values())
        assert len(server.list("partitions/").entries) == kept
        assert {entry.key.removeprefix("configs/topic/") for entry in server.list("configs/topic/").entries} <= set(
            image.topics
        )

    simulate(scenario)
