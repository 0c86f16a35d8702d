"""Zigzag varints, as records use them: small magnitudes take one byte, negative ones too.

An ``IndexError`` means that the bytes end inside the number; callers turn it into their own error.
"""

from __future__ import annotations

from headpond.protocol.records.errors import CorruptBatch


def encode_varint(value: int) -> bytes:
    """Up to 64 bits, signed."""
    zigzag = (value << 1) ^ (value >> 63)
    if zigzag < 0x80:
        return _ONE_BYTE[zigzag]
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


_ONE_BYTE = [bytes((n,)) for n in range(0x80)]


def decode_varint(data: bytes, position: int, *, bytes_max: int = 5) -> tuple[int, int]:
    """The number at ``position`` and where it ends. 5 bytes hold an i32, 10 an i64; higher bits are dropped."""
    byte = data[position]
    if byte < 0x80:  # nearly always
        return (byte >> 1) ^ -(byte & 1), position + 1
    zigzag = byte & 0x7F
    for index in range(1, bytes_max):
        byte = data[position + index]
        zigzag |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            zigzag &= 0xFFFF_FFFF if bytes_max == 5 else 0xFFFF_FFFF_FFFF_FFFF
            return (zigzag >> 1) ^ -(zigzag & 1), position + index + 1
    raise CorruptBatch(f"a varint is longer than {bytes_max} bytes")
