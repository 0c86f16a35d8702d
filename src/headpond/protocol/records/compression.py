"""The codecs of a batch's payload: none, gzip, snappy, lz4, zstd.

Decompression is bounded: a payload that would grow beyond ``size_bytes_max`` raises ``DecompressedTooLarge`` having
taken at most about three times that much memory, however small it is itself. All other damage is ``CorruptBatch``.

Snappy comes in two dresses: Java and kafka-python frame it in blocks (xerial), librdkafka sends one raw block. Both
are read; blocks are written, as Kafka does. LZ4 frames are written with independent blocks and without a content
checksum, the only kind that Java clients read.
"""

from __future__ import annotations

import struct
import zlib
from types import ModuleType

from headpond.model.libraries import library
from headpond.ports import Buffer
from headpond.protocol.records.errors import CorruptBatch, DecompressedTooLarge, UnknownCodec

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_LEVELS = {GZIP: -1, LZ4: 9, ZSTD: 3}

DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024
"""For callers without a limit of their own: more than a hundred times the default ``max.message.bytes``."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_FIRST_GUESS_BYTES_MIN = 64 * 1024
_block_size = struct.Struct(">i")


def decompress(codec: int, payload: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The records behind a batch's header. ``codec``: the lowest three bits of its attributes."""
    if codec == NONE:
        return bytes(payload)
    if codec == SNAPPY:
        return _decompress_snappy(payload, size_bytes_max)
    if codec in (GZIP, LZ4, ZSTD):
        return _decompress_growing(getattr(_cramjam(), CODEC_NAMES[codec]), payload, size_bytes_max)
    raise UnknownCodec(f"Unknown compression type id: {codec}")


def compress(codec: int, payload: Buffer, level: int | None = None) -> bytes:
    """``level`` None: Kafka's default for the codec; snappy has none."""
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    if codec == NONE:
        return bytes(payload)
    if codec == GZIP:
        return zlib.compress(payload, level, wbits=31)
    if codec == SNAPPY:
        return _compress_snappy(payload)
    if codec == LZ4:
        compressor = _cramjam().lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        compressor.compress(bytes(payload))
        return bytes(compressor.finish())
    if codec == ZSTD:
        return bytes(_cramjam().zstd.compress(payload, level=level))
    raise UnknownCodec(f"Unknown compression type id: {codec}")


def _cramjam() -> ModuleType:
    """Imported on first use: a broker that never looks inside a batch never needs it."""
    module: ModuleType = library("cramjam")
    return module


def _decompress_growing(module: ModuleType, payload: Buffer, size_bytes_max: int) -> bytes:
    # These formats need not say how large they get. A fixed output buffer is the only bound that the library knows, so
    # we try with a likely size and go up. Fresh buffers are untouched zero pages: unused space costs nothing.
    capacity = min(size_bytes_max, max(_FIRST_GUESS_BYTES_MIN, 8 * len(payload)))
    while True:
        output = bytearray(capacity)
        try:
            size = module.decompress_into(payload, output)
            return bytes(memoryview(output)[:size])
        except Exception as error:  # of several kinds, one per codec
            if "failed to write whole buffer" not in str(error):
                raise CorruptBatch(f"the payload does not decompress: {error}") from None
        if capacity >= size_bytes_max:
            raise DecompressedTooLarge(
                f"the payload of {len(payload)} bytes is larger than {size_bytes_max} bytes inside"
            )
        capacity = min(size_bytes_max, 4 * capacity)


def _decompress_snappy(payload: Buffer, size_bytes_max: int) -> bytes:
    view = memoryview(payload)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, size_bytes_max)
    blocks: list[bytes] = []
    position = len(_XERIAL_HEADER)
    while position < len(view):
        # Streams that were written one after the other repeat the header.
        if bytes(view[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        if position + 4 > len(view):
            raise CorruptBatch("a snappy block's length is cut off")
        (size,) = _block_size.unpack_from(view, position)
        position += 4
        if size < 0 or position + size > len(view):
            raise CorruptBatch(f"a snappy block of {size} bytes is cut off")
        blocks.append(block := _decompress_snappy_block(view[position : position + size], size_bytes_max))
        size_bytes_max -= len(block)
        position += size
    return b"".join(blocks)


def _decompress_snappy_block(block: memoryview, size_bytes_max: int) -> bytes:
    snappy = _cramjam().snappy
    try:
        size = snappy.decompress_raw_len(block)
        # A block can't grow more than 64 bytes for each 3 of its own: a length beyond that is a lie.
        if size > 32 * len(block):
            raise CorruptBatch(f"a snappy block of {len(block)} bytes claims to hold {size}")
        if size > size_bytes_max:
            raise DecompressedTooLarge(f"a snappy block holds {size} bytes, {size_bytes_max} are allowed")
        return bytes(snappy.decompress_raw(block))
    except CorruptBatch:
        raise
    except Exception as error:
        raise CorruptBatch(f"the payload does not decompress: {error}") from None


def _compress_snappy(payload: Buffer) -> bytes:
    snappy = _cramjam().snappy
    view = memoryview(payload)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_block_size.pack(len(block)), block)
    return b"".join(parts)
