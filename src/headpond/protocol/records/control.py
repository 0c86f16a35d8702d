"""Control batches: the COMMIT and ABORT markers that end a producer's transaction in a partition.

A marker is a batch of one record with the control bit set. Key: version i16, type i16 (0 abort, 1 commit); value:
version i16, coordinator epoch i32. Later versions may append fields: what follows is skipped.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headpond.ports import Buffer
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import CONTROL_BIT, TRANSACTIONAL_BIT
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Record

ABORT = 0
COMMIT = 1
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class EndTxnMarker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int
    timestamp: int


def read_end_txn_marker(batch: Buffer) -> EndTxnMarker | None:
    """The marker in a control batch. None: the batch is empty (the cleaner left it), or another kind of control record.

    Raises ``CorruptBatch`` when the record is not what a marker looks like.
    """
    record = next(read_records(batch), None)
    if record is None:
        return None
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptBatch("a control record has no type in its key")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptBatch(f"a control record's key has version {version}")
    if kind not in (ABORT, COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptBatch("a transaction marker has no coordinator epoch")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise CorruptBatch(f"a transaction marker's value has version {version}")
    return EndTxnMarker(kind == ABORT, coordinator_epoch, record.timestamp)


def build_end_txn_marker(
    *, producer_id: int, producer_epoch: int, is_abort: bool, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """The batch that ends a transaction, ready to be appended."""
    key = _KEY.pack(0, ABORT if is_abort else COMMIT)
    record = Record(0, timestamp, key, _VALUE.pack(0, coordinator_epoch))
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
    )
