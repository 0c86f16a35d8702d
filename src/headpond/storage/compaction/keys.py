"""The keys of a batch's records, found in one pass over its payload: the inner loop of compaction.

A third of a microsecond per record, or two thirds when each looks different from the one before. Only what a cleaning
needs is looked at: sizes, keys, and whether there is a value. The records of a batch mostly look alike, so the front of
one (everything before its key) serves as a form for the next:

    size varint (1-2 bytes) · attributes · timestamp delta varint · offset delta varint · key size (1 byte) | key ...
    all bits                  none         only the bits that tell where it ends          all bits

Read as one number and masked so, a front that was met before has the same shape to the last byte, and its record the
same size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.longs import LONG_MAX, LONG_MIN
from headpond.protocol.records.skim import TimestampDeltas
from headpond.protocol.records.varint import decode_varint

KEY_BYTES_MAX = 48
"""Longer keys are known by a digest, so that memory does not depend on them."""
_DIGEST_BYTES = KEY_BYTES_MAX + 1  # no short key can be taken for a digest
_SHORT_KEY = 2 * KEY_BYTES_MAX  # as a varint has it
_RECORD_BYTES_MIN = 7
_FRONT_BYTES_MAX = 8
"""Fronts up to this size serve as forms: one machine word."""
_BEFORE = bytes(_FRONT_BYTES_MAX)
_BEHIND = bytes(_FRONT_BYTES_MAX + KEY_BYTES_MAX + 1)
_CHANGE_COST = 5
"""To take another form costs as much as so many records gain by it."""
_CREDIT = 20
"""A batch in which forms lose more than this goes on without."""
_FRONTS_MAX = 1_000
"""So many of a form are remembered, 0.1 MB; then it begins anew."""


class _Form:
    """Fronts of one length before keys of one length: those that were met, masked, with the sizes of their records."""

    __slots__ = ("mask", "record_bytes", "unpack")

    def __init__(self, size_bytes: int, front_bytes: int, key_bytes: int) -> None:
        deltas = b"\x80" * (front_bytes - size_bytes - 2)
        self.mask = int.from_bytes(b"\xff" * size_bytes + b"\0" + deltas + b"\xff", "big")
        # The front and whatever lies before it in a word; the key; the first byte of the value's size.
        self.unpack: Callable[[bytes, int], tuple[Any, ...]] = struct.Struct(f">Q{key_bytes}sB").unpack_from
        self.record_bytes: dict[int, int] = {}


_forms: dict[tuple[int, int, int], _Form] = {}


def read_keys(payload: bytes, count: int) -> tuple[list[bytes | None], list[int]]:
    """The key of each record (None: it has none), and which records have no value."""
    if count * _RECORD_BYTES_MIN > len(payload):
        raise CorruptBatch(f"{len(payload)} bytes can't hold {count} records")
    keys: list[bytes | None] = []
    tombstones: list[int] = []
    add = keys.append
    padded = b""
    profit = _CREDIT
    position = number = 0
    try:
        while number < count:
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
            front_at = position
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
                key_at = 0
            else:
                key_at = position + 1
                position = key_at + (byte >> 1)
                add(payload[key_at:position])
            if payload[position] & 1:  # an odd varint is negative: no value
                tombstones.append(number)
            number += 1
            if profit < 0 or not 0 < key_at - start <= _FRONT_BYTES_MAX or front_at - start > 2 or position + 2 > end:
                position = end
                continue
            padded = padded or b"".join((_BEFORE, payload, _BEHIND))
            front_bytes = key_at - start
            form = _form(front_at - start, front_bytes, byte >> 1)
            unpack, mask, record_bytes = form.unpack, form.mask, form.record_bytes
            record_bytes[unpack(padded, key_at)[0] & mask] = end - start
            find = record_bytes.get
            position = end
            profit -= number + _CHANGE_COST
            for number in range(number, count):  # noqa: B020 (goes on from where it stands)
                front, key, byte = unpack(padded, position + front_bytes)
                found = find(front & mask)
                if found is None:
                    break
                add(key)
                if byte & 1:
                    tombstones.append(number)
                position += found
            else:
                break
            profit += number
    except (IndexError, struct.error):
        raise CorruptBatch("the records end before their last one does") from None
    if position != len(payload):
        raise CorruptBatch(f"the records end at byte {position} of {len(payload)}")
    return keys, tombstones


def _form(size_bytes: int, front_bytes: int, key_bytes: int) -> _Form:
    form = _forms.get((size_bytes, front_bytes, key_bytes))
    if form is None:
        form = _forms[size_bytes, front_bytes, key_bytes] = _Form(size_bytes, front_bytes, key_bytes)
    elif len(form.record_bytes) >= _FRONTS_MAX:
        form.record_bytes.clear()
    return form


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


def take_records(payload: bytes, kept: bytes | bytearray) -> tuple[list[bytes], TimestampDeltas]:
    """The records whose byte in ``kept`` is 1 and not 0, as they are, and the span of their times. At least one is."""
    parts: list[bytes] = []
    smallest, largest = LONG_MAX, LONG_MIN
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
                if delta > largest:
                    largest = delta
                if delta < smallest:
                    smallest = delta
            position = end
    except IndexError:
        raise CorruptBatch("the records end before their last one does") from None
    return parts, TimestampDeltas(smallest, largest)
