"""Records in __consumer_offsets: offsets and classic groups. KEY is the record type."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i32, i64, versions


class LegacyOffsetCommitKey(Message):
    KEY = 0
    VERSIONS = versions(0, 0)

    group: str = ""
    topic: str = ""
    partition: i32 = 0


class LegacyOffsetCommitValue(Message):
    KEY = 0
    VERSIONS = versions(0, 0)

    offset: i64 = 0
    metadata: str = ""
    commit_timestamp: i64 = 0


class OffsetCommitKey(Message):
    KEY = 1
    VERSIONS = versions(0, 0)

    group: str = ""
    topic: str = ""
    partition: i32 = 0


class OffsetCommitValue(Message):
    KEY = 1
    VERSIONS = versions(0, 4)
    FLEXIBLE = 4

    offset: i64 = 0
    leader_epoch: Annotated[i32, "3+ ignorable"] = -1
    metadata: str = ""
    commit_timestamp: i64 = 0
    expire_timestamp: Annotated[i64, "1 ignorable"] = -1
    topic_id: Annotated[Uuid, "4+ tag 0 ignorable"] = ZERO_UUID


class GroupMetadataKey(Message):
    KEY = 2
    VERSIONS = versions(0, 0)

    group: str = ""


class GroupMetadataValue(Message):
    KEY = 2
    VERSIONS = versions(0, 4)
    FLEXIBLE = 4

    class MemberMetadata(Struct):
        member_id: str = ""
        group_instance_id: Annotated[str | None, "3+ ignorable"] = None
        client_id: str = ""
        client_host: str = ""
        rebalance_timeout: Annotated[i32, "1+ ignorable"] = -1
        session_timeout: i32 = 0
        subscription: bytes = b""
        assignment: bytes = b""

    protocol_type: str = ""
    generation: i32 = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: Annotated[i64, "2+ ignorable"] = -1
    members: list[MemberMetadata] = []
