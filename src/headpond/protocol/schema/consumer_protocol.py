"""What classic consumers put into JoinGroup and SyncGroup as opaque bytes."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i32, versions


class ConsumerProtocolSubscription(Message):
    VERSIONS = versions(0, 3)

    class TopicPartition(Struct):
        topic: str = ""
        partitions: list[i32] = []

    topics: list[str] = []
    user_data: bytes | None = None
    owned_partitions: Annotated[list[TopicPartition], "1+ ignorable"] = []
    generation_id: Annotated[i32, "2+ ignorable"] = -1
    rack_id: Annotated[str | None, "3+ ignorable"] = None


class ConsumerProtocolAssignment(Message):
    VERSIONS = versions(0, 3)

    class TopicPartition(Struct):
        topic: str = ""
        partitions: list[i32] = []

    assigned_partitions: list[TopicPartition] = []
    user_data: bytes | None = None
