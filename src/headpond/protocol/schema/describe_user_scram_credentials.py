"""DescribeUserScramCredentials (API key 50): v0."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class DescribeUserScramCredentialsRequest(Message):
    KEY = 50
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class UserName(Struct):
        name: str = ""

    users: list[UserName] | None = []


class DescribeUserScramCredentialsResponse(Message):
    KEY = 50
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class DescribeUserScramCredentialsResult(Struct):
        user: str = ""
        error_code: i16 = 0
        error_message: str | None = ""
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = []

    class CredentialInfo(Struct):
        mechanism: i8 = 0
        iterations: i32 = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
