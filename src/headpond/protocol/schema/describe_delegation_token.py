"""DescribeDelegationToken (API key 41): v1-3."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class DescribeDelegationTokenRequest(Message):
    KEY = 41
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = ""
        principal_name: str = ""

    owners: list[DescribeDelegationTokenOwner] | None = []


class DescribeDelegationTokenResponse(Message):
    KEY = 41
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    class DescribedDelegationToken(Struct):
        principal_type: str = ""
        principal_name: str = ""
        token_requester_principal_type: Annotated[str, "3+"] = ""
        token_requester_principal_name: Annotated[str, "3+"] = ""
        issue_timestamp: i64 = 0
        expiry_timestamp: i64 = 0
        max_timestamp: i64 = 0
        token_id: str = ""
        hmac: bytes = b""
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = []

    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str = ""
        principal_name: str = ""

    error_code: i16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: i32 = 0
