"""InitProducerId (API key 22): v0-6, v6 not stable yet."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, i16, i32, i64, versions


class InitProducerIdRequest(Message):
    KEY = 22
    VERSIONS = versions(0, 6)
    FLEXIBLE = 2

    transactional_id: str | None = ""
    transaction_timeout_ms: i32 = 0
    producer_id: Annotated[i64, "3+"] = -1
    producer_epoch: Annotated[i16, "3+"] = -1
    enable2_pc: Annotated[bool, "6+"] = False
    keep_prepared_txn: Annotated[bool, "6+"] = False


class InitProducerIdResponse(Message):
    KEY = 22
    VERSIONS = versions(0, 6)
    FLEXIBLE = 2

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
    ongoing_txn_producer_id: Annotated[i64, "6+"] = -1
    ongoing_txn_producer_epoch: Annotated[i16, "6+"] = -1
