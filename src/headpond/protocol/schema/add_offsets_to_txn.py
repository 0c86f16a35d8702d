"""AddOffsetsToTxn (API key 25): v0-4."""

from __future__ import annotations

from headpond.protocol.types import Message, i16, i32, i64, versions


class AddOffsetsToTxnRequest(Message):
    KEY = 25
    VERSIONS = versions(0, 4)
    FLEXIBLE = 3

    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Message):
    KEY = 25
    VERSIONS = versions(0, 4)
    FLEXIBLE = 3

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
