"""``compact()``: the broker's compactor, run to its end because somebody asked.

Everything up to the end of the log at the call is looked at: the active segment is finished first, and a checkpoint
makes its end one that compaction may rely on. A record without a key is found before anything is changed. A crash at
any point leaves each segment as it was or cleaned (``storage.compaction.swap``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from headpond.log.batch import RawBatch
from headpond.log.engine import Engine
from headpond.log.errors import CompactionFailed, KeyMissing
from headpond.model import StorageFailed
from headpond.protocol.records.header import HEADER_BYTES
from headpond.protocol.records.reader import read_payload
from headpond.protocol.records.skim import skim
from headpond.storage.compaction.choice import Dirt


class Compacted(NamedTuple):
    """What a compaction did."""

    records_read: int
    records_removed: int
    bytes_before: int
    """Of the whole log."""
    bytes_after: int
    end_offset: int
    """Below it no key has two records. What was appended since waits for the next compaction."""


async def begin(engine: Engine, tombstone_retention_ms: int) -> Dirt | None:
    """What there is to clean; None: nothing. Nobody else's compaction begins until ``is_compacting`` is taken back."""
    engine.check_working()
    if engine.is_compacting:
        raise CompactionFailed("another compaction of the log is under way")
    engine.is_compacting = True
    try:
        return await _dirt_of(engine, tombstone_retention_ms)
    except BaseException:
        engine.is_compacting = False
        raise


async def _dirt_of(engine: Engine, tombstone_retention_ms: int) -> Dirt | None:
    log = engine.log
    if log.active is None:
        return None
    try:
        await log.roll()
        await log.ports.checkpointed(log)
    except StorageFailed as error:
        raise CompactionFailed(f"the log could not be compacted: {error.message}") from error
    if log.recovery_point < log.active.base_offset:
        raise CompactionFailed("the log could not be compacted: its checkpoint could not be written (a full disk?)")
    log.reconfigure(msgspec.structs.replace(log.config, compacts=True, delete_retention_ms=tombstone_retention_ms))
    try:
        dirt = engine.manager.make_compactor().dirt_of(log)
    finally:
        log.reconfigure(msgspec.structs.replace(log.config, compacts=False))
    return dirt if isinstance(dirt, Dirt) and dirt.segments else None


def check_keys(batches: Iterator[RawBatch]) -> None:
    """On the caller's thread. Raises ``KeyMissing``."""
    for batch in batches:
        header = batch.header
        if header.is_control or not header.count:
            continue
        payload = read_payload(batch.data, header) if header.codec else bytes(batch.data[HEADER_BYTES:])
        if skim(payload, header.count, needs_keys=True) is None:  # no, or not sure
            for record in batch.records():
                if record.key is None:
                    raise KeyMissing(record.offset)


async def clean(engine: Engine, dirt: Dirt, tombstone_retention_ms: int) -> Compacted:
    log, compactor = engine.log, engine.manager.make_compactor()
    stats, bytes_before = compactor.stats, log.size_bytes
    read, removed, failures = stats.records_read, stats.records_removed, stats.failures
    log.reconfigure(msgspec.structs.replace(log.config, compacts=True, delete_retention_ms=tombstone_retention_ms))
    try:
        is_clean = await compactor.clean(log, dirt)
    finally:
        log.reconfigure(msgspec.structs.replace(log.config, compacts=False))
    engine.visible.refresh()
    engine.check_working()
    if not is_clean:
        reason = compactor.uncleanable.pop(log, None)
        if reason is None and stats.failures == failures:
            reason = "its segments were changed meanwhile"
        raise CompactionFailed(f"the log could not be compacted: {reason or 'see the log of the process'}")
    return Compacted(
        stats.records_read - read,
        stats.records_removed - removed,
        bytes_before,
        log.size_bytes,
        dirt.segments[-1].end_offset,
    )
