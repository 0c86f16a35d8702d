"""TxnOffsetCommit (API key 28): v0-5."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class TxnOffsetCommitRequest(Message):
    KEY = 28
    VERSIONS = versions(0, 5)
    FLEXIBLE = 3

    class TxnOffsetCommitRequestTopic(Struct):
        name: str = ""
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = []

    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: i32 = 0
        committed_offset: i64 = 0
        committed_leader_epoch: Annotated[i32, "2+ ignorable"] = -1
        committed_metadata: str | None = ""

    transactional_id: str = ""
    group_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    generation_id: Annotated[i32, "3+"] = -1
    member_id: Annotated[str, "3+"] = ""
    group_instance_id: Annotated[str | None, "3+"] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponse(Message):
    KEY = 28
    VERSIONS = versions(0, 5)
    FLEXIBLE = 3

    class TxnOffsetCommitResponseTopic(Struct):
        name: str = ""
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = []

    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0

    throttle_time_ms: i32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
