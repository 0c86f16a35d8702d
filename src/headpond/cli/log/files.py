"""What is in one file of a data folder: its parts in order, each with what is wrong with it. Reads; never writes.

    .log .checkpoint    batches, on demand their records        .index .timeindex .txnindex     entries
    .snapshot           producers                               checkpoints and small files     lines

Files that were renamed on their way out or in (``.deleted``, ``.cleaned``, ``.swap``) are read as what they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from headpond.cli.log.batches import Batch, Rest, walk
from headpond.cli.log.indexes import IndexCheck, offset_entries, time_entries, txn_entries
from headpond.model.ids import id_text
from headpond.ports import FileSystem
from headpond.protocol.records.compression import CODEC_NAMES
from headpond.protocol.records.control import read_end_txn_marker
from headpond.protocol.records.errors import CorruptBatch
from headpond.storage.folder import names
from headpond.storage.folder.checkpoint_files import CorruptCheckpoint, decode_lines, decode_offsets
from headpond.storage.folder.names import BadFile
from headpond.storage.producers.snapshot import CorruptSnapshot, decode_snapshot

BATCHES = ".log"
_SUFFIXES_ON_THE_WAY = (names.DELETED, names.CLEANED, names.SWAP)
_KRAFT_SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint")
_TEXT_FILES = {
    names.PARTITION_METADATA,
    names.LEADER_EPOCHS,
    names.RECOVERY_POINTS,
    names.HIGH_WATERMARKS,
    names.LOG_STARTS,
    names.CLEANED_OFFSETS,
    names.META_PROPERTIES,
    names.CLEAN_SHUTDOWN,
}
EXPECTED = ".log, .index, .timeindex, .txnindex, .snapshot, a checkpoint, partition.metadata, meta.properties"


class Item(NamedTuple):
    """One part of a file: a batch, a record, an entry, a producer, a line."""

    kind: str
    facts: dict[str, Any]
    faults: tuple[str, ...] = ()


class Kind(NamedTuple):
    base_offset: int
    suffix: str
    """``.log`` for anything that holds batches; the whole name for the small files."""


def kind_of(name: str) -> Kind | None:
    """None: no file that a broker writes into a data folder, or one without content (a lock)."""
    for suffix in _SUFFIXES_ON_THE_WAY:
        name = name.removesuffix(suffix)
    if parsed := names.parse_file_name(name):
        return Kind(*parsed)
    if _KRAFT_SNAPSHOT.fullmatch(name):
        return Kind(0, BATCHES)  # a state, not a log: its offsets begin anew
    return Kind(0, name) if name in _TEXT_FILES else None


def items(
    fs: FileSystem, path: str, kind: Kind, *, with_records: bool, advance: Callable[[int], None] = lambda _: None
) -> Iterator[Item]:
    """Blocking. ``advance`` is told of bytes as they are read."""
    if kind.suffix == BATCHES:
        return _batches(fs, path, kind, with_records=with_records, advance=advance)
    data = fs.read_file(path)
    advance(len(data))
    if kind.suffix in (names.INDEX, names.TIME_INDEX):
        return _index(fs, path, kind, data)
    if kind.suffix == names.TXN_INDEX:
        return _aborted(data)
    return _producers(data, kind.base_offset) if kind.suffix == names.SNAPSHOT else _lines(data, kind.suffix)


# --- batches ----------------------------------------------------------------------------------------------------------


def _batches(
    fs: FileSystem, path: str, kind: Kind, *, with_records: bool, advance: Callable[[int], None]
) -> Iterator[Item]:
    file = fs.open(path, writable=False)
    try:
        for part in walk(file, file.size(), kind.base_offset, with_records=with_records):
            yield rest_item(part) if isinstance(part, Rest) else batch_item(part)
            advance(part.size_bytes if isinstance(part, Rest) else part.header.size_bytes)
            if with_records and isinstance(part, Batch) and not part.faults:
                yield from _records(part)
    finally:
        file.close()


def rest_item(rest: Rest) -> Item:
    return Item("rest", {"position": rest.position, "size_bytes": rest.size_bytes}, (rest.fault,))


def batch_item(batch: Batch) -> Item:
    header = batch.header
    facts = {
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "size_bytes": header.size_bytes,
        "records": header.count,
        "codec": CODEC_NAMES[header.codec] if header.codec < len(CODEC_NAMES) else f"codec {header.codec}",
        "leader_epoch": header.leader_epoch,
        "timestamp_type": "LogAppendTime" if header.is_append_time else "CreateTime",
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon": header.has_delete_horizon,
        "crc": f"{header.crc:#010x}",
    }
    return Item("batch", facts, batch.faults)


def _records(batch: Batch) -> Iterator[Item]:
    from headpond.cli.common.record_json import record_fields

    marker = None
    if batch.header.is_control:
        try:
            marker = read_end_txn_marker(batch.data)
        except CorruptBatch as error:
            yield Item("record", {"offset": batch.header.base_offset}, (f"no control record: {error}",))
            return
    for record in batch.records():
        facts: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
        facts |= record_fields(record.key, record.value, record.headers)
        if marker is not None:
            facts["marker"] = "abort" if marker.is_abort else "commit"
            facts["coordinator_epoch"] = marker.coordinator_epoch
        yield Item("record", facts)


# --- indexes ----------------------------------------------------------------------------------------------------------


def _index(fs: FileSystem, path: str, kind: Kind, data: bytes) -> Iterator[Item]:
    """The entries, and their agreement with the segment beside the file; a note when there is none."""
    is_time = kind.suffix == names.TIME_INDEX
    offsets, offset_fault = ([], "") if is_time else offset_entries(data, kind.base_offset)
    times, time_fault = time_entries(data, kind.base_offset) if is_time else ([], "")
    for number, offset_entry in enumerate(offsets):
        yield Item("entry", {"number": number, **offset_entry._asdict()})
    for number, time_entry in enumerate(times):
        yield Item("entry", {"number": number, **time_entry._asdict()})
    if fault := offset_fault or time_fault:
        yield Item("fault", {}, (fault,))
    segment = path.replace(kind.suffix, names.LOG, 1) if path.count(kind.suffix) == 1 else ""
    if not fs.exists(segment):
        yield Item("note", {"text": "no .log file lies beside it: its entries were not compared with batches"})
        return
    check = IndexCheck(offsets, times)
    file = fs.open(segment, writable=False)
    try:
        for part in walk(file, file.size(), kind.base_offset):
            if isinstance(part, Batch):
                check.batch(part)
    finally:
        file.close()
    check.finish()
    for fault in (*check.offset_faults, *check.time_faults):
        yield Item("fault", {}, (fault,))


def _aborted(data: bytes) -> Iterator[Item]:
    entries, fault = txn_entries(data)
    for entry in entries:
        yield Item("aborted", entry._asdict())
    if fault:
        yield Item("fault", {}, (fault,))


# --- small files ------------------------------------------------------------------------------------------------------


def _producers(data: bytes, end_offset: int) -> Iterator[Item]:
    try:
        entries = decode_snapshot(data)
    except CorruptSnapshot as error:
        yield Item("fault", {}, (str(error),))
        return
    for entry in entries:
        late = entry.last_offset >= end_offset
        fault = (f"its last offset {entry.last_offset} is not before the snapshot's {end_offset}",) if late else ()
        yield Item("producer", entry._asdict(), fault)


def _lines(data: bytes, name: str) -> Iterator[Item]:
    try:
        yield from _parsed(data, name)
    except (BadFile, CorruptCheckpoint) as error:
        yield Item("fault", {}, (str(error),))


def _parsed(data: bytes, name: str) -> Iterator[Item]:
    if name == names.PARTITION_METADATA:
        yield Item("line", {"topic_id": id_text(names.decode_partition_metadata(data))})
    elif name == names.META_PROPERTIES:
        yield Item("line", names.decode_meta_properties(data)._asdict())
    elif name == names.CLEAN_SHUTDOWN:
        epoch = names.decode_clean_shutdown(data)
        yield Item("line", {"broker_epoch": epoch}, () if epoch is not None else ("it is no clean-shutdown marker",))
    elif name == names.LEADER_EPOCHS:
        yield from _epochs(data)
    else:
        for tp, offset in decode_offsets(data).items():
            yield Item("line", {"topic": tp.topic, "partition": tp.partition, "offset": offset})


def _epochs(data: bytes) -> Iterator[Item]:
    before = (-1, -1)
    for row in decode_lines(data):
        try:
            epoch, start_offset = map(int, row.split())
        except ValueError:
            yield Item("fault", {}, (f"malformed line {row[:100]!r}",))
            return
        follows = epoch > before[0] and start_offset > before[1]
        fault = (
            () if follows else (f"epoch {epoch} at offset {start_offset} does not follow {before[0]} at {before[1]}",)
        )
        yield Item("line", {"epoch": epoch, "start_offset": start_offset}, fault)
        before = (epoch, start_offset)
