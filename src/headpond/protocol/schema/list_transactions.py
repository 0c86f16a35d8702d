"""ListTransactions (API key 66): v0-2."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class ListTransactionsRequest(Message):
    KEY = 66
    VERSIONS = versions(0, 2)
    FLEXIBLE = 0

    state_filters: list[str] = []
    producer_id_filters: list[i64] = []
    duration_filter: Annotated[i64, "1+"] = -1
    transactional_id_pattern: Annotated[str | None, "2+"] = None


class ListTransactionsResponse(Message):
    KEY = 66
    VERSIONS = versions(0, 2)
    FLEXIBLE = 0

    class TransactionState(Struct):
        transactional_id: str = ""
        producer_id: i64 = 0
        transaction_state: str = ""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []
