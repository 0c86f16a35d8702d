"""The keys of a batch's records, found in one pass over its payload: the inner loop of compaction.

Half a microsecond per record. Numbers of one byte, which nearly all are, are decoded on the spot; only what a cleaning
needs is looked at: sizes, keys, and whether there is a value.
"""

from __future__ import annotations

from penstock.protocol.records.errors import CorruptBatch
from penstock.protocol.records.varint import decode_varint

KEY_BYTES_MAX = 48
"""Longer keys are known by a digest, so that memory does not depend on them."""
_DIGEST_BYTES = KEY_BYTES_MAX + 1  # no short key can be taken for a digest
_SHORT_KEY = 2 * KEY_BYTES_MAX  # as a varint has it


def read_keys(payload: bytes, count: int) -> tuple[list[bytes | None], list[int]]:
    """The key of each record (None: it has none), and which records have no value."""
    keys: list[bytes | None] = []
    tombstones: list[int] = []
    add = keys.append
    position = 0
    try:
        for number in range(count):
            byte = payload[position]
            if byte < 0x80:
                position += 1
                end = position + (byte >> 1)
            else:
                second = payload[position + 1]
                if second < 0x80:
                    position += 2
                    end = position + ((byte & 0x7F | second << 7) >> 1)
                else:
                    size, position = decode_varint(payload, position)
                    end = position + size
            position += 1  # behind the record's attributes
            while payload[position] > 0x7F:  # timestamp delta
                position += 1
            position += 1
            while payload[position] > 0x7F:  # offset delta
                position += 1
            position += 1
            byte = payload[position]
            if byte & 1 or byte > _SHORT_KEY:
                key, position = _other_key(payload, position)
                add(key)
            else:
                start = position + 1
                position = start + (byte >> 1)
                add(payload[start:position])
            if payload[position] & 1:  # an odd varint is negative: no value
                tombstones.append(number)
            position = end
    except IndexError:
        raise CorruptBatch("the records end before their last one does") from None
    if position != len(payload):
        raise CorruptBatch(f"the records end at byte {position} of {len(payload)}")
    return keys, tombstones


def _other_key(payload: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = decode_varint(payload, position)
    if size < 0:
        return None, position
    end = position + size
    if end > len(payload):
        raise CorruptBatch(f"a key of {size} bytes is cut off")
    key = payload[position:end]
    return (key if size <= KEY_BYTES_MAX else _digest(key)), end


def _digest(key: bytes) -> bytes:
    from hashlib import blake2b  # 3 ms that a broker without long keys need not pay

    return blake2b(key, digest_size=_DIGEST_BYTES).digest()


def take_records(payload: bytes, kept: bytes | bytearray) -> tuple[list[bytes], int | None]:
    """The records whose byte in ``kept`` is 1 and not 0, as they are, and the largest timestamp delta among them."""
    parts: list[bytes] = []
    largest: int | None = None
    position = 0
    try:
        for flag in kept[: kept.rfind(1) + 1]:
            start = position
            byte = payload[position]
            if byte < 0x80:
                position += 1
                end = position + (byte >> 1)
            else:
                second = payload[position + 1]
                if second < 0x80:
                    position += 2
                    end = position + ((byte & 0x7F | second << 7) >> 1)
                else:
                    size, position = decode_varint(payload, position)
                    end = position + size
            if flag:
                parts.append(payload[start:end])
                byte = payload[position + 1]
                if byte < 0x80:
                    delta = (byte >> 1) ^ -(byte & 1)
                else:
                    delta, _ = decode_varint(payload, position + 1, bytes_max=10)
                if largest is None or delta > largest:
                    largest = delta
            position = end
    except IndexError:
        raise CorruptBatch("the records end before their last one does") from None
    return parts, largest
