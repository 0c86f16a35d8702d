"""CreateDelegationToken (API key 38): v1-3."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class CreateDelegationTokenRequest(Message):
    KEY = 38
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    class CreatableRenewers(Struct):
        principal_type: str = ""
        principal_name: str = ""

    owner_principal_type: Annotated[str | None, "3+"] = ""
    owner_principal_name: Annotated[str | None, "3+"] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: i64 = 0


class CreateDelegationTokenResponse(Message):
    KEY = 38
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    error_code: i16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, "3+"] = ""
    token_requester_principal_name: Annotated[str, "3+"] = ""
    issue_timestamp_ms: i64 = 0
    expiry_timestamp_ms: i64 = 0
    max_timestamp_ms: i64 = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: i32 = 0
