"""A quick look through a batch's records: are they what they should be? Makes no object of any of them.

For producers to compacted topics, whose records are all looked at: 0.65 us per record where decoding takes 2.2 to 2.5
(records of 100 B and 1 KB, one core). It only ever says yes or *don't know*; who needs the reason decodes the records.
Numbers of one and two bytes, which nearly all are, are read on the spot: a function call costs more than all the rest.
"""

from __future__ import annotations

from typing import NamedTuple

from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.longs import LONG_MAX, LONG_MIN
from headpond.protocol.records.varint import decode_varint


class TimestampDeltas(NamedTuple):
    smallest: int
    largest: int

    def span_from(self, base_timestamp: int) -> tuple[int, int] | None:
        """The earliest and the latest timestamp; None where one wraps around: look at them one by one."""
        first, last = base_timestamp + self.smallest, base_timestamp + self.largest
        return (first, last) if first >= LONG_MIN and last <= LONG_MAX else None


def skim(payload: bytes, count: int, *, needs_keys: bool) -> TimestampDeltas | None:
    """The span of the records' times, if they are numbered 0, 1, 2, ..., each is as long as it says, they fill the
    payload, and all have keys where those are needed. None: look at them one by one. ``count`` is 1 or more."""
    smallest, largest = 1 << 63, -1 << 63
    position = 0
    try:
        for twice_number in range(0, 2 * count, 2):
            byte = payload[position]
            if byte & 1:  # an odd varint is negative
                return None
            if byte < 0x80:
                position += 1
                end = position + (byte >> 1)
            elif (second := payload[position + 1]) < 0x80:
                position += 2
                end = position + ((byte & 0x7F | second << 7) >> 1)
            else:
                size, position = decode_varint(payload, position)
                end = position + size
            byte = payload[position + 1]  # behind the record's attributes: none exist
            if byte < 0x80:
                position += 2
            elif (second := payload[position + 2]) < 0x80:
                position += 3
                byte = byte & 0x7F | second << 7
            else:
                delta, position = decode_varint(payload, position + 1, bytes_max=10)
                byte = delta << 1 if delta >= 0 else ~(delta << 1)
            delta = ~(byte >> 1) if byte & 1 else byte >> 1
            if delta > largest:
                largest = delta
            if delta < smallest:
                smallest = delta
            byte = payload[position]  # the number
            if byte < 0x80:
                position += 1
            elif (second := payload[position + 1]) < 0x80:
                position += 2
                byte = byte & 0x7F | second << 7
            else:
                number, position = decode_varint(payload, position)
                byte = number << 1
            if byte != twice_number:
                return None
            byte = payload[position]  # the key's size; a negative one: there is none
            if byte < 0x80 and not byte & 1:
                position += 1 + (byte >> 1)
            else:
                size, position = decode_varint(payload, position)
                if size >= 0:
                    position += size
                elif needs_keys:
                    return None
            byte = payload[position]  # the value's
            if byte < 0x80:
                position += 1 if byte & 1 else 1 + (byte >> 1)
            elif (second := payload[position + 1]) < 0x80 and not byte & 1:
                position += 2 + ((byte & 0x7F | second << 7) >> 1)
            else:
                size, position = decode_varint(payload, position)
                position += max(0, size)
            position = _behind_headers(payload, position) if payload[position] else position + 1
            if position != end:
                return None
    except (IndexError, CorruptBatch):
        return None
    return TimestampDeltas(smallest, largest) if position == len(payload) else None


def _behind_headers(payload: bytes, position: int) -> int:
    """``CorruptBatch`` or ``IndexError`` when they are not in order."""
    count, position = decode_varint(payload, position)
    if not 0 < count <= len(payload) - position:
        raise CorruptBatch("so many headers don't fit")
    for _ in range(count):
        size, position = decode_varint(payload, position)
        if size < 0:
            raise CorruptBatch("a header has no name")
        size, position = decode_varint(payload, position + size)
        position += max(0, size)
    return position
