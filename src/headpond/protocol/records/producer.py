"""The fields of a producer, written into a batch that is finished already.

Who makes a batch may not know yet which producer will send it: producer id and epoch come with the transaction,
sequences with the order of sending.
"""

from __future__ import annotations

import struct

from headpond.protocol.records.header import ATTRIBUTES_POSITION, CRC_POSITION, TRANSACTIONAL_BIT, crc_of

PRODUCER_POSITION = 43
_attributes = struct.Struct(">h")
_producer = struct.Struct(">qhi")
_crc = struct.Struct(">I")


def patch_producer(
    batch: bytearray | memoryview, *, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
) -> None:
    """Write the producer's fields of ``batch`` (exactly one, writable) in place, and the checksum that goes with them.

    Its records take the sequences from ``base_sequence`` on, one each; after 2^31 - 1 comes 0.
    """
    (attributes,) = _attributes.unpack_from(batch, ATTRIBUTES_POSITION)
    attributes = attributes | TRANSACTIONAL_BIT if is_transactional else attributes & ~TRANSACTIONAL_BIT
    _attributes.pack_into(batch, ATTRIBUTES_POSITION, attributes)
    _producer.pack_into(batch, PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    _crc.pack_into(batch, CRC_POSITION, crc_of(batch))
