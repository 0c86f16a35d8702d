"""Reads a finished segment batch by batch. Whatever fails its CRC is never copied: corruption must not be laundered."""

from __future__ import annotations

from collections.abc import Iterator

from headpond.ports import File
from headpond.protocol.records.checksum import crc32c
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import ATTRIBUTES_POSITION, HEADER_BYTES, MAGIC, BatchHeader, read_header

_BATCH_BYTES_MAX = 1 << 31


def walk(file: File, size_bytes: int, read_bytes: int) -> Iterator[tuple[BatchHeader, bytes]]:
    """Each batch with its header. Raises ``CorruptBatch`` where none can be. Blocking."""
    position = 0
    wanted = read_bytes = max(read_bytes, HEADER_BYTES)
    while position < size_bytes:
        chunk = file.read(position, min(wanted, size_bytes - position))
        view = memoryview(chunk)
        at = 0
        needed = HEADER_BYTES
        while len(chunk) - at >= HEADER_BYTES:
            header = read_header(chunk, at)
            end = at + header.size_bytes
            if header.magic != MAGIC or not HEADER_BYTES <= header.size_bytes < _BATCH_BYTES_MAX:
                raise CorruptBatch(f"no batch starts like what lies at position {position + at}")
            if end > len(chunk):
                needed = header.size_bytes
                break
            if crc32c(view[at + ATTRIBUTES_POSITION : end]) != header.crc:
                raise CorruptBatch(f"the batch at offset {header.base_offset} fails its CRC")
            yield header, chunk[at:end]
            at = end
        if at == 0 and (position + needed > size_bytes or wanted >= needed):
            raise CorruptBatch(f"the segment ends inside a batch, at position {position}")
        wanted = max(read_bytes, needed) if at == 0 else read_bytes
        position += at
