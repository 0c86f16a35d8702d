"""RemoveRaftVoter (API key 81): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Uuid, i16, i32, versions


class RemoveRaftVoterRequest(Message):
    KEY = 81
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    cluster_id: str | None = ""
    voter_id: i32 = 0
    voter_directory_id: Uuid = ZERO_UUID


class RemoveRaftVoterResponse(Message):
    KEY = 81
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
