"""EndTxn (API key 26): v0-5."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, i16, i32, i64, versions


class EndTxnRequest(Message):
    KEY = 26
    VERSIONS = versions(0, 5)
    FLEXIBLE = 3

    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    committed: bool = False


class EndTxnResponse(Message):
    KEY = 26
    VERSIONS = versions(0, 5)
    FLEXIBLE = 3

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: Annotated[i64, "5+ ignorable"] = -1
    producer_epoch: Annotated[i16, "5+ ignorable"] = -1
