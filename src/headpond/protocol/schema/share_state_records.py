"""Keys and values of the records in __share_group_state."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i16, i32, i64, versions


class ShareSnapshotKey(Message):
    KEY = 0
    VERSIONS = versions(0, 0)

    group_id: str = ""
    topic_id: Uuid = ZERO_UUID
    partition: i32 = 0


class ShareSnapshotValue(Message):
    KEY = 0
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class StateBatch(Struct):
        first_offset: i64 = 0
        last_offset: i64 = 0
        delivery_state: i8 = 0
        delivery_count: i16 = 0

    snapshot_epoch: i32 = 0
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: Annotated[i32, "tag 0"] = -1
    create_timestamp: i64 = 0
    write_timestamp: i64 = 0
    state_batches: list[StateBatch] = []


class ShareUpdateKey(Message):
    KEY = 1
    VERSIONS = versions(0, 0)

    group_id: str = ""
    topic_id: Uuid = ZERO_UUID
    partition: i32 = 0


class ShareUpdateValue(Message):
    KEY = 1
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class StateBatch(Struct):
        first_offset: i64 = 0
        last_offset: i64 = 0
        delivery_state: i8 = 0
        delivery_count: i16 = 0

    snapshot_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: Annotated[i32, "tag 0"] = -1
    state_batches: list[StateBatch] = []
