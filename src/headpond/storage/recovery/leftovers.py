"""Files that an interrupted change left behind in a partition's folder, settled as Kafka settles them.

    .deleted            retention or truncation was on its way: remove
    .cleaned            a compaction that had not finished: remove, and with it ``.swap`` files at or above its offset
    .swap               a compaction that had: its segments replace those they cover
    .tmp                a checkpoint that was being written: remove

Safe to be interrupted and run again. Blocking.
"""

from __future__ import annotations

from headpond.ports import FileSystem
from headpond.protocol.records.errors import CorruptBatch
from headpond.storage.folder import names
from headpond.storage.log.segment import SPAN_BYTES, read_span
from headpond.storage.log.segment_files import rename_logs_last, sync_folder


def finish_interrupted_work(fs: FileSystem, path: str) -> None:
    present = fs.list_dir(path)
    cleaned = [name for name in present if name.endswith(names.CLEANED)]
    swaps = [name for name in present if name.endswith(names.SWAP)]
    if cleaned or swaps:
        _finish_compaction(fs, path, cleaned, swaps)
    for name in fs.list_dir(path):
        if name.endswith((".tmp", names.DELETED)):
            fs.remove(f"{path}/{name}")


def _finish_compaction(fs: FileSystem, path: str, cleaned: list[str], swaps: list[str]) -> None:
    """Each step is durable before the next: what is left in between must tell the same story."""
    cleaned_from = min((_offset_of(name) for name in cleaned), default=1 << 63)
    undecided = [name for name in swaps if _offset_of(name) >= cleaned_from]  # or part of a split
    logs = [name for name in swaps if name.endswith(names.LOG + names.SWAP) and name not in undecided]
    # An index without its log is an index of another file: it is made anew.
    decided_offsets = {_offset_of(name) for name in logs}
    lone = [name for name in swaps if name not in undecided and _offset_of(name) not in decided_offsets]
    for doomed in (undecided + lone, cleaned):
        for name in doomed:
            fs.remove(f"{path}/{name}")
        if doomed:
            sync_folder(fs, path)
    if not logs:
        return
    first = min(decided_offsets)
    end = max(_end_offset(fs, f"{path}/{name}", _offset_of(name)) for name in logs)
    present = fs.list_dir(path)
    replaced: list[str] = []
    for name in present:
        parsed = names.parse_file_name(name)
        if parsed is None or parsed[1] not in names.SEGMENT_SUFFIXES:
            continue
        if parsed[0] in decided_offsets and names.file_name(parsed[0], names.LOG) not in present:
            continue  # the new one's already: its log comes last (see ``compaction.swap``)
        if first <= parsed[0] < end or parsed[0] in decided_offsets:
            replaced.append(name)
    rename_logs_last(fs, path, {name: f"{name}{names.DELETED}" for name in replaced})
    decided = sorted(name for name in swaps if _offset_of(name) in decided_offsets)
    rename_logs_last(fs, path, {name: name[: -len(names.SWAP)] for name in decided})


def _offset_of(name: str) -> int:
    digits = name.split(".", 1)[0]
    return int(digits) if digits.isdigit() else 1 << 63


def _end_offset(fs: FileSystem, path: str, base_offset: int) -> int:
    """Behind the last whole batch of a segment."""
    file = fs.open(path, writable=False)
    try:
        end_offset, position, size_bytes = base_offset, 0, file.size()
        while position + SPAN_BYTES <= size_bytes:
            try:
                _, last_offset, batch_bytes = read_span(file.read(position, SPAN_BYTES), 0)
            except CorruptBatch:
                break
            position += batch_bytes
            if position <= size_bytes:
                end_offset = last_offset + 1
        return end_offset
    finally:
        file.close()
