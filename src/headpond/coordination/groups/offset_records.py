"""Committed offsets as records of ``__consumer_offsets``: those of one request, and those that remove one."""

from __future__ import annotations

from headpond.coordination.groups.offset_memory import NO_TIME
from headpond.coordination.records import CoordinatorRecord
from headpond.model import ErrorCode
from headpond.protocol.schema.classic_group_records import OffsetCommitKey, OffsetCommitValue
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest

_Wanted = OffsetCommitRequest.OffsetCommitRequestPartition | TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition


class NewOffsets:
    """The records of one request."""

    def __init__(self, group_id: str, *, now_ms: int, expires_ms: int, metadata_max: int) -> None:
        self.records: list[CoordinatorRecord] = []
        self._group_id = group_id
        self._now_ms = now_ms
        self._expires_ms = expires_ms
        self._metadata_max = metadata_max

    def add(self, topic: str, topic_id: bytes, wanted: _Wanted) -> ErrorCode:
        metadata = wanted.committed_metadata or ""
        if utf16_length(metadata) > self._metadata_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        value = OffsetCommitValue(
            wanted.committed_offset,
            wanted.committed_leader_epoch,
            metadata,
            self._now_ms,
            self._expires_ms,
            topic_id,
        )
        self.records.append(CoordinatorRecord(OffsetCommitKey(self._group_id, topic, wanted.partition_index), value))
        return ErrorCode.NONE


def utf16_length(text: str) -> int:
    """As Java counts: what lies beyond the first 65,536 characters counts twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group_id, topic, partition), None)


def value_version(value: OffsetCommitValue) -> int:
    """An expiry of its own has a place in v1 only; topic ids have since v4."""
    return 4 if value.expire_timestamp == NO_TIME else 1
