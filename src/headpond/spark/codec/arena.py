"""Memory for decompressed batches, used again and again.

The rules are those of ``protocol.records.compression``, which unpacks what does not fit, and snappy with its two
framings: bounded growth, ``CorruptBatch`` for all damage.
"""

from __future__ import annotations

from collections.abc import Callable

import cramjam
import numpy as np

from headpond.protocol.records.compression import GZIP, LZ4, ZSTD, decompress
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import HEADER_BYTES
from headpond.spark.codec.jit import Bytes

HEADROOM_BYTES = 1024 * 1024
"""Room behind a full section for its last batch; producers seldom make larger ones."""

_UNPACK_INTO: dict[int, Callable[..., int]] = {
    GZIP: cramjam.gzip.decompress_into,
    LZ4: cramjam.lz4.decompress_into,
    ZSTD: cramjam.zstd.decompress_into,
}


class Arena:
    def __init__(self, section_bytes: int) -> None:
        self._full_bytes = section_bytes + HEADROOM_BYTES
        self.memory: Bytes = np.empty(0, np.uint8)  # made when the first compressed batch comes
        self.used_bytes = 0

    def clear(self) -> None:
        self.used_bytes = 0

    def unpack(self, codec: int, batch: memoryview) -> tuple[int, int] | None:
        """Where the batch lies, its header as it was and its payload decompressed; None when there is no room left."""
        if len(self.memory) == 0:
            self.memory = np.empty(self._full_bytes, np.uint8)
        payload_start = self.used_bytes + HEADER_BYTES
        if payload_start >= len(self.memory):
            return None
        unpack_into = _UNPACK_INTO.get(codec)
        if unpack_into is None:
            return self._copy(batch, decompress(codec, batch[HEADER_BYTES:]))
        try:
            size = unpack_into(batch[HEADER_BYTES:], self.memory[payload_start:])
        except Exception as error:  # of several kinds, one per codec
            if "failed to write whole buffer" in str(error):
                return None
            raise CorruptBatch(f"the payload does not decompress: {error}") from None
        return self._taken(batch, size)

    def unpack_alone(self, codec: int, batch: memoryview) -> tuple[int, int]:
        """The same as the only batch, in memory that grows to what it needs. Raises ``DecompressedTooLarge``."""
        self.clear()
        payload = decompress(codec, batch[HEADER_BYTES:])
        if HEADER_BYTES + len(payload) > len(self.memory):
            self.memory = np.empty(HEADER_BYTES + len(payload), np.uint8)
        placed = self._copy(batch, payload)
        if placed is None:
            raise CorruptBatch("the payload does not fit into memory that was made for it")
        return placed

    def _copy(self, batch: memoryview, payload: bytes) -> tuple[int, int] | None:
        payload_start = self.used_bytes + HEADER_BYTES
        if len(payload) > len(self.memory) - payload_start:
            return None
        self.memory[payload_start : payload_start + len(payload)] = np.frombuffer(payload, np.uint8)
        return self._taken(batch, len(payload))

    def _taken(self, batch: memoryview, payload_bytes: int) -> tuple[int, int]:
        start = self.used_bytes
        self.memory[start : start + HEADER_BYTES] = np.frombuffer(batch[:HEADER_BYTES], np.uint8)
        self.used_bytes = start + HEADER_BYTES + payload_bytes
        return start, self.used_bytes
