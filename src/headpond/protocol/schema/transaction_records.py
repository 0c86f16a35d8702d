"""Keys and values of the records in __transaction_state."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, i64, versions


class TransactionLogKey(Message):
    KEY = 0
    VERSIONS = versions(0, 0)

    transactional_id: str = ""


class TransactionLogValue(Message):
    KEY = 0
    VERSIONS = versions(0, 1)
    FLEXIBLE = 1

    class PartitionsSchema(Struct):
        topic: str = ""
        partition_ids: list[i32] = []

    producer_id: i64 = 0
    previous_producer_id: Annotated[i64, "1+ tag 0"] = -1
    next_producer_id: Annotated[i64, "1+ tag 1"] = -1
    producer_epoch: i16 = 0
    next_producer_epoch: Annotated[i16, "1+ tag 3"] = -1
    transaction_timeout_ms: i32 = 0
    transaction_status: i8 = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: i64 = 0
    transaction_start_timestamp_ms: i64 = 0
    client_transaction_version: Annotated[i16, "1+ tag 2"] = 0
