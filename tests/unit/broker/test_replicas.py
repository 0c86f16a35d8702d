"""The partitions that a broker holds follow the metadata image."""

from __future__ import annotations

import asyncio

from headpond.broker.replicas.replicas import Replicas
from headpond.cluster.delta import Delta, PartitionChange
from headpond.cluster.image import MetadataImage
from headpond.cluster.rows import PartitionState
from headpond.model import TopicId
from unit.storage.storage_rig import TOPIC_ID, TP, Rig, make_batch

OTHER_ID = TopicId(bytes(16 * [9]))
STATE = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))


def test_a_topic_deleted_and_made_again_in_one_step_of_the_image_begins_empty() -> None:
    async def run() -> None:
        rig = Rig()
        old = await rig.open()
        await rig.append(old, make_batch(10), flush=True)
        replicas = Replicas(
            broker_id=1,
            rack=None,
            image=MetadataImage(),
            logs=rig.manager,
            tasks=rig.tasks,
            make_partition=rig.partition,
            config_of=lambda _: rig.config,
        )
        replicas.apply(Delta(1, partitions=(PartitionChange(TP.topic, TOPIC_ID, 0, None, STATE),)))
        gone = PartitionChange(TP.topic, TOPIC_ID, 0, STATE, None)
        made = PartitionChange(TP.topic, OTHER_ID, 0, None, STATE)
        replicas.apply(Delta(2, partitions=(gone, made)))
        partition = replicas.partition(TP)
        assert partition is not None
        assert partition.log is not old and partition.log.topic_id == OTHER_ID
        assert (partition.high_watermark, partition.log.log_end_offset) == (0, 0)
        assert (await rig.append(partition.log, make_batch(3), flush=True)).base_offset == 0
        assert partition.high_watermark == 3

    asyncio.run(run())
