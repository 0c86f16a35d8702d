"""Which transactions were aborted, when a log is opened: what its transaction indexes and its markers say. Blocking."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from headpond.ports import FileSystem
from headpond.storage.folder import names
from headpond.storage.log.segment_files import write_txn_index
from headpond.storage.producers.txn_index import AbortedTxn, ending_in
from headpond.storage.producers.txn_index import decode_prefix as decode_aborted
from headpond.storage.producers.txn_index import encode as encode_aborted

if TYPE_CHECKING:
    from headpond.storage.recovery.recovery import Recovered

_log = logging.getLogger(__name__)


def first_damaged_index(fs: FileSystem, path: str, bases: list[int], bare_bases: list[int]) -> int | None:
    """The first segment whose transaction index can't be read as a whole: the markers from there on tell. One whose
    other indexes are gone (``bare_bases``) may have lost this one as well, which alone would look like a segment in
    which nothing was aborted."""
    for base in sorted({*bases, *bare_bases}):
        if base in bare_bases:
            if fs.file_size(f"{path}/{names.file_name(base, names.LOG)}"):
                return base
            continue
        file = f"{path}/{names.file_name(base, names.TXN_INDEX)}"
        data = fs.read_file(file)
        if encode_aborted(decode_aborted(data)) != data:
            _log.warning("%s is damaged or cut off; the aborted transactions are read from the batches", file)
            return base
    return None


def settle_aborted(
    fs: FileSystem,
    path: str,
    log: Recovered,
    bases: list[int],
    *,
    believed_end_offset: int,
    durable_end_offset: int,
    replayed: list[AbortedTxn],
) -> None:
    """What the transaction indexes say, and behind the point where the replay began what that has met: there an index
    may lack entries, and have those of markers that are gone. Then the files say the same, durably: entries behind
    ``durable_end_offset`` that look right may be in memory only, after a kill or a failed sync."""
    on_disk: dict[int, bytes] = {}
    by_end = {each.last_offset: each for each in replayed}
    unread = {segment.base_offset for segment in log.segments if segment.scanned is None}
    for base in bases:
        on_disk[base] = fs.read_file(f"{path}/{names.file_name(base, names.TXN_INDEX)}")
        for each in decode_aborted(on_disk[base]):
            if base <= each.last_offset and (each.last_offset < believed_end_offset or base in unread):
                by_end[each.last_offset] = each
    present = {segment.base_offset for segment in log.segments}
    log.aborted = [by_end[end] for end in sorted(by_end) if end < log.log_end_offset] if present else []
    for segment in log.segments:
        own = ending_in(log.aborted, segment.base_offset, segment.end_offset)
        segment.txn_entries = len(own)
        data = encode_aborted(log.aborted[own.start : own.stop])
        is_in_doubt = bool(data) and segment.end_offset > durable_end_offset
        if is_in_doubt or data != on_disk.get(segment.base_offset, b""):
            write_txn_index(fs, path, segment.base_offset, data)
