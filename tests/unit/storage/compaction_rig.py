"""A compacted topic on a simulated disk, and what a consumer would make of it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headpond.config.compaction import CompactionSettings
from headpond.config.log import LogConfig
from headpond.protocol.records.reader import read_records
from headpond.storage.compaction.compactor import Compactor
from headpond.storage.log.log import PartitionLog
from headpond.storage.manager import StorageConfig
from support.batches import Batch, Rec, build, split
from unit.storage.storage_rig import CONFIG, NOW_MS, Rig, read_now

COMPACTED = msgspec.structs.replace(
    CONFIG,
    compacts=True,
    deletes=False,
    segment_bytes=400,
    index_interval_bytes=90,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=10_000,
)

BY_HAND = StorageConfig(recovery_threads=1, compaction=CompactionSettings(is_enabled=False))
"""Nothing is compacted but by ``clean_dirtiest``: for tests that look at the disk at a certain moment."""


class Kept(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


def keyed(*pairs: tuple[str, str | None], timestamp_ms: int = NOW_MS, codec: str = "none", **options: int) -> bytes:
    """A batch of (key, value) records; no value: a tombstone."""
    rows = [Rec(None if value is None else value.encode(), key.encode()) for key, value in pairs]
    return build(rows, timestamp_ms=timestamp_ms, codec=codec, **options)  # type: ignore[arg-type]


async def kept(log: PartitionLog) -> list[Kept]:
    """Every record that a consumer from the log's start gets."""
    found = []
    for batch in await batches_of(log):
        assert batch.crc_is_right
        for record in read_records(batch.data):
            if record.offset >= log.log_start_offset:
                found.append(Kept(record.offset, record.key, record.value, record.timestamp))
    return found


async def batches_of(log: PartitionLog) -> list[Batch]:
    """As a consumer reads them. A log that was compacted and then cut may end with offsets that hold nothing."""
    found: list[Batch] = []
    offset = log.log_start_offset
    limits = {"up_to_end_offset": log.log_end_offset, "size_bytes_max": 300, "at_least_one_batch": True}
    while offset < log.log_end_offset:
        read = read_now(log, offset, **limits) or await log.read_cold(offset, **limits)  # type: ignore[arg-type]
        if not read.data:
            break
        found += split(bytes(read.data))
        assert read.next_offset > offset
        offset = read.next_offset
    return found


def table(records: list[Kept]) -> dict[bytes | None, bytes]:
    """What a consumer knows after it has read them all."""
    state: dict[bytes | None, bytes] = {}
    for record in records:
        state.pop(record.key, None)
        if record.value is not None:
            state[record.key] = record.value
    return state


def compactor_of(rig: Rig) -> Compactor:
    return rig.manager.make_compactor()


async def compact(rig: Rig, log: PartitionLog, *, roll: bool = True) -> bool:
    """Roll, move the recovery point, and clean until nothing is left to be cleaned. True: something was."""
    if roll:
        await log.roll()
    await log.flush()
    await rig.checkpoint()
    cleaned = False
    while await compactor_of(rig).clean_dirtiest():
        cleaned = True
    return cleaned


async def compacted_log(config: LogConfig = COMPACTED) -> tuple[Rig, PartitionLog]:
    rig = Rig(config=config)
    return rig, await rig.open()
