"""After a crash: what was durable by the journal only becomes part of the logs again, and the journal goes.

Runs when every log has been recovered from its own files and nobody is served yet. Safe to be interrupted at any point
and run again: what a log has got already is passed over, and the journal goes last, when everything is synced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from headpond.ports import Clock, FileSystem, Workers
from headpond.protocol.records.header import read_header
from headpond.storage.commit import journal
from headpond.storage.commit.journal import Entry
from headpond.storage.folder.data_folder import StrayFolder
from headpond.storage.log.log import PartitionLog

_log = logging.getLogger(__name__)
_NO_LIMIT_BYTES = 1 << 62


async def take_in(
    logs: Iterable[PartitionLog],
    strays: Iterable[StrayFolder],
    *,
    is_clean: bool,
    data_dir: str,
    fs: FileSystem,
    workers: Workers,
    clock: Clock,
) -> None:
    """``is_clean``: the logs were closed so, and whatever there is of a journal is not needed. Raises
    ``StorageFailed``: the journal stays for the next start."""
    if not await workers.run(journal.is_there, fs, data_dir):
        return
    found = {} if is_clean else await workers.run(journal.read, fs, data_dir)
    known = {(log.topic_id, log.tp.partition): log for log in logs}
    await asyncio.gather(*[_append_again(known[each], found[each], clock) for each in found if each in known])
    unknown = {(stray.topic_id, stray.tp.partition) for stray in strays}
    if any(each in unknown for each in found):
        _log.warning("the journal has records of partitions that are nobody's: set aside in %s", data_dir)
        await workers.run(journal.set_aside, fs, data_dir)
    else:
        await workers.run(journal.remove, fs, data_dir)


async def _append_again(log: PartitionLog, entries: Iterable[Entry], clock: Clock) -> None:
    log.scan_room_bytes = _NO_LIMIT_BYTES  # there are no checkpoint rounds yet that could make room
    for base_offset, batch in entries:
        data, now_ms = memoryview(bytearray(batch)), clock.now_ms()
        header = read_header(data)
        if base_offset < log.log_end_offset:
            continue
        if base_offset > log.log_end_offset or header.leader_epoch < log.epochs.latest_epoch:
            _log.warning("the journal does not go on where %s ends, at %d", log.tp, log.log_end_offset)
            break
        while not log.can_append(len(data), header.max_timestamp, now_ms):
            await log.make_room(len(data), header.max_timestamp, now_ms)
        log.append_copy(data, header, now_ms=now_ms)
    await log.flush()
    log.leave_to_recovery(log.bytes_before_checkpoint)
