"""The producer state snapshot beside a log's segments."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, i64, u32, versions


class ProducerSnapshot(Message):
    VERSIONS = versions(1, 1)

    class ProducerEntry(Struct):
        producer_id: i64 = 0
        epoch: i16 = 0
        last_sequence: i32 = 0
        last_offset: i64 = 0
        offset_delta: i32 = 0
        timestamp: i64 = 0
        coordinator_epoch: i32 = 0
        current_txn_first_offset: i64 = 0

    crc: u32 = 0
    producer_entries: list[ProducerEntry] = []
