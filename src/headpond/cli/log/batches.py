"""The batches of a ``.log`` file, one after the other, each with what is wrong with it. Reads; never writes.

A batch that fails a check is shown with its fault and the walk goes on behind it, as its length says; where no batch
can start, the rest of the file is one ``Rest``. The file may belong to a running broker: it is read, not mapped, and
only as far as it reached at the start (a batch that was being written then is read to its end).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headpond.ports import File
from headpond.protocol.records.compression import CODEC_NAMES
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, BatchHeader, crc_of, read_header
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Record

CHUNK_BYTES = 4 * 1024 * 1024
OLD_OVERHEAD_BYTES = 14
"""The least length of a message of the formats before Kafka 0.11: crc, magic, attributes, key and value sizes."""


class Batch(NamedTuple):
    position: int
    header: BatchHeader
    data: bytes
    faults: tuple[str, ...]

    def records(self) -> list[Record]:
        """Raises ``CorruptBatch``."""
        return list(read_records(self.data))


class Rest(NamedTuple):
    """What lies behind the last batch and is none."""

    position: int
    size_bytes: int
    fault: str


class _Window:
    """The file in large reads, seen at increasing positions."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._start = 0
        self._data = b""

    def at(self, position: int, size_bytes: int) -> bytes:
        """Shorter only at the end of the file."""
        offset = position - self._start
        if offset < 0 or offset + size_bytes > len(self._data):
            self._data = self._file.read(position, max(size_bytes, CHUNK_BYTES))
            self._start, offset = position, 0
        return self._data[offset : offset + size_bytes]


def walk(file: File, size_bytes: int, base_offset: int, *, with_records: bool = False) -> Iterator[Batch | Rest]:
    """Blocking. ``base_offset``: the number in the file's name, below which no batch may begin."""
    window = _Window(file)
    position, next_offset = 0, base_offset
    while position < size_bytes:
        head = window.at(position, HEADER_BYTES)
        fault = _why_no_batch(head)
        batch_bytes = LOG_OVERHEAD_BYTES + int.from_bytes(head[8:12], "big") if not fault else 0
        # The length is not believed before the file is known to have that much: a wrong one may say 2 GiB.
        if not fault and position + batch_bytes > size_bytes and position + batch_bytes > file.size():
            fault = _cut(batch_bytes, file.size() - position)
        if fault:
            yield Rest(position, size_bytes - position, fault)
            return
        data = window.at(position, batch_bytes)
        if head[16] != MAGIC:
            yield Rest(
                position,
                batch_bytes,
                f"a message of format {head[16]} (before Kafka 0.11), which Kafka 4 does not read either",
            )
        else:
            header = read_header(data)
            yield Batch(position, header, data, tuple(_faults(header, data, next_offset, with_records=with_records)))
            next_offset = max(next_offset, header.last_offset + 1)
        position += batch_bytes


def _why_no_batch(head: bytes) -> str:
    """Nothing, if a batch can start like this."""
    if len(head) < LOG_OVERHEAD_BYTES + 5:
        return f"the file ends inside a batch: {len(head)} bytes are left"
    if not any(head):
        return "zeros: space that was set aside and never written"
    base_offset = int.from_bytes(head[:8], "big", signed=True)
    length = int.from_bytes(head[8:12], "big", signed=True)
    magic = head[16]
    length_min = HEADER_BYTES - LOG_OVERHEAD_BYTES if magic == MAGIC else OLD_OVERHEAD_BYTES
    if base_offset < 0 or magic > MAGIC or length < length_min:
        return f"no batch starts like this: offset {base_offset}, length {length}, format {magic}"
    return "" if len(head) == HEADER_BYTES or magic != MAGIC else _cut(LOG_OVERHEAD_BYTES + length, len(head))


def _cut(batch_bytes: int, found_bytes: int) -> str:
    return f"the file ends inside a batch: {found_bytes} of its {batch_bytes} bytes are there"


def _faults(header: BatchHeader, data: bytes, next_offset: int, *, with_records: bool) -> Iterator[str]:
    crc = crc_of(data)
    if crc != header.crc:
        yield f"the CRC is {crc:#010x}, the header says {header.crc:#010x}"
    if header.base_offset < next_offset:
        yield f"offset {header.base_offset} can't follow {next_offset - 1}"
    if header.last_offset_delta < 0 or not 0 <= header.count <= header.last_offset_delta + 1:
        yield f"{header.count} records can't have the offsets {header.base_offset} to {header.last_offset}"
    elif header.codec >= len(CODEC_NAMES):
        yield f"compression {header.codec} does not exist"
    elif with_records and crc == header.crc:
        yield from _record_faults(header, data)


def _record_faults(header: BatchHeader, data: bytes) -> Iterator[str]:
    last_offset = header.base_offset - 1
    try:
        for record in read_records(data):
            if not last_offset < record.offset <= header.last_offset:
                yield f"a record has offset {record.offset} after {last_offset} in a batch up to {header.last_offset}"
                return
            last_offset = record.offset
    except CorruptBatch as error:
        yield f"the records can't be read: {error}"
