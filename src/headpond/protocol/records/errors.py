"""What can be wrong with a batch's bytes. Nothing else leaves the readers in this package."""

from __future__ import annotations


class CorruptBatch(Exception):
    """The bytes are not what their header says: cut off, counts that lie, a payload that does not decompress."""


class UnknownCodec(CorruptBatch):
    """The attributes name a compression that does not exist (5 to 7)."""


class DecompressedTooLarge(CorruptBatch):
    """The payload would grow beyond the limit given by the caller: a bomb, or a batch that should have been split."""
