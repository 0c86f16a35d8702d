"""AddPartitionsToTxn (API key 24): v0-5."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class AddPartitionsToTxnRequest(Message):
    KEY = 24
    VERSIONS = versions(0, 5)
    FLEXIBLE = 3

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = ""
        producer_id: i64 = 0
        producer_epoch: i16 = 0
        verify_only: bool = False
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = []

    class AddPartitionsToTxnTopic(Struct):
        name: str = ""
        partitions: list[i32] = []

    transactions: Annotated[list[AddPartitionsToTxnTransaction], "4+"] = []
    v3_and_below_transactional_id: Annotated[str, "0-3"] = ""
    v3_and_below_producer_id: Annotated[i64, "0-3"] = 0
    v3_and_below_producer_epoch: Annotated[i16, "0-3"] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], "0-3"] = []


class AddPartitionsToTxnResponse(Message):
    KEY = 24
    VERSIONS = versions(0, 5)
    FLEXIBLE = 3

    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = ""
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = []

    class AddPartitionsToTxnTopicResult(Struct):
        name: str = ""
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = []

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: i32 = 0
        partition_error_code: i16 = 0

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, "4+ ignorable"] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], "4+"] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], "0-3"] = []
