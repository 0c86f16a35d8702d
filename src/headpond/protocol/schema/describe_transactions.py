"""DescribeTransactions (API key 65): v0."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class DescribeTransactionsRequest(Message):
    KEY = 65
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    transactional_ids: list[str] = []


class DescribeTransactionsResponse(Message):
    KEY = 65
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TransactionState(Struct):
        error_code: i16 = 0
        transactional_id: str = ""
        transaction_state: str = ""
        transaction_timeout_ms: i32 = 0
        transaction_start_time_ms: i64 = 0
        producer_id: i64 = 0
        producer_epoch: i16 = 0
        topics: list[DescribeTransactionsResponse.TopicData] = []

    class TopicData(Struct):
        topic: str = ""
        partitions: list[i32] = []

    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []
