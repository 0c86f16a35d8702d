"""A coordinator's log gets a new segment when the one it has is full, however large a batch may be by the settings."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from headpond.broker.coordinators.home import ROOM_BYTES, InternalTopic
from headpond.model import StorageFailed
from headpond.replication.partition import Partition
from headpond.storage.log.offset_index import POSITION_MAX
from unit.storage.storage_rig import CONFIG, Rig

MIB = 1024 * 1024


async def home_with(rig: Rig) -> tuple[InternalTopic, Partition]:
    partition = rig.partition(await rig.open())
    partition.lead(0)
    replicas: Any = SimpleNamespace(get=lambda _: SimpleNamespace(partition=partition))
    return InternalTopic(partition.tp.topic, replicas, rig.clock), partition


async def write(home: InternalTopic, value: bytes) -> None:
    while not home.has_room(0):
        await home.make_room(0)
    home.append(0, [(b"key", value)], None)


@pytest.mark.parametrize(("batch_bytes_max", "segment_bytes"), [(100 * MIB, 100 * MIB), (MIB + 12, MIB), (MIB, 40_000)])
def test_small_writes_share_a_segment(batch_bytes_max: int, segment_bytes: int) -> None:
    async def run() -> None:
        config = msgspec.structs.replace(CONFIG, max_message_bytes=batch_bytes_max, segment_bytes=segment_bytes)
        home, partition = await home_with(Rig(config=config))
        for _ in range(100):
            await write(home, b"a committed offset")
        assert len(partition.log.segments) == 1

    asyncio.run(run())


def test_a_segment_with_less_room_than_nearly_all_writes_take_is_not_written_to() -> None:
    async def run() -> None:
        config = msgspec.structs.replace(CONFIG, max_message_bytes=MIB, segment_bytes=10 * ROOM_BYTES)
        home, partition = await home_with(Rig(config=config))
        for _ in range(10):
            await write(home, bytes(ROOM_BYTES - 200))
        assert len(partition.log.segments) == 1
        await write(home, b"small")
        assert [segment.end_offset for segment in partition.log.segments] == [10, 11]

    asyncio.run(run())


def test_a_batch_that_would_make_the_file_too_long_for_kafka_waits_for_a_new_segment() -> None:
    async def run() -> None:
        config = msgspec.structs.replace(CONFIG, max_message_bytes=100 * MIB, segment_bytes=POSITION_MAX)
        home, partition = await home_with(Rig(config=config))
        await write(home, b"first")
        assert partition.log.active is not None
        partition.log.active.size_bytes = POSITION_MAX - 2 * ROOM_BYTES  # as if
        assert home.has_room(0)
        with pytest.raises(StorageFailed):
            home.append(0, [(b"key", bytes(3 * ROOM_BYTES))], None)
        partition.log.active.size_bytes = 90  # what it really has
        await write(home, bytes(3 * ROOM_BYTES))
        assert [segment.end_offset for segment in partition.log.segments] == [1, 2]

    asyncio.run(run())
