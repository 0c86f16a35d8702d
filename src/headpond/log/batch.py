"""A batch as the file has it, and its records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headpond.log.errors import CorruptRecord
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import HEADER_BYTES, BatchHeader
from headpond.protocol.records.reader import iter_payload, read_payload
from headpond.protocol.records.record import Record
from headpond.protocol.records.varint import decode_varint


class RawBatch(NamedTuple):
    """One batch, checksum compared. Nothing of it is decoded but its header."""

    header: BatchHeader
    """As the format has it: timestamps, codec, producer."""
    data: memoryview
    """All of it, header included: what a Kafka client would fetch."""

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        return self.header.base_offset + self.header.last_offset_delta

    @property
    def record_count(self) -> int:
        return self.header.count

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def records(self, from_offset: int = 0) -> Iterator[Record]:
        """In order, from ``from_offset`` on, each decoded when it is asked for. None for markers of transactions, which
        only brokers write. Raises ``CorruptRecord``."""
        header = self.header
        if header.is_control:
            return
        try:
            payload = read_payload(self.data, header) if header.codec else bytes(self.data[HEADER_BYTES:])
            skipped = from_offset - header.base_offset
            if skipped > 0 and header.count == header.last_offset_delta + 1:  # none was compacted away
                payload = payload[_behind(payload, skipped) :]
                header = header._replace(count=header.count - skipped)
            for record in iter_payload(payload, header):
                if record.offset >= from_offset:
                    yield record
        except (CorruptBatch, IndexError) as error:
            raise CorruptRecord(self.base_offset, self.last_offset + 1, str(error)) from None


def _behind(payload: bytes, records: int) -> int:
    """Where the record after so many begins: their sizes lead there. ``IndexError`` if there are fewer."""
    position = 0
    for _ in range(records):
        byte = payload[position]
        if byte < 0x80:
            position += 1 + (byte >> 1)
        elif (second := payload[position + 1]) < 0x80:
            position += 2 + ((byte & 0x7F | second << 7) >> 1)
        else:
            size, position = decode_varint(payload, position)
            position += max(0, size)
    return position
