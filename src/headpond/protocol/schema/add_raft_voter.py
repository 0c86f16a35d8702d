"""AddRaftVoter (API key 80): v0-1."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, u16, versions


class AddRaftVoterRequest(Message):
    KEY = 80
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class Listener(Struct):
        name: str = ""
        host: str = ""
        port: u16 = 0

    cluster_id: str | None = ""
    timeout_ms: i32 = 0
    voter_id: i32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = []
    ack_when_committed: Annotated[bool, "1+"] = True


class AddRaftVoterResponse(Message):
    KEY = 80
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
