"""AlterUserScramCredentials (API key 51): v0."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class AlterUserScramCredentialsRequest(Message):
    KEY = 51
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class ScramCredentialDeletion(Struct):
        name: str = ""
        mechanism: i8 = 0

    class ScramCredentialUpsertion(Struct):
        name: str = ""
        mechanism: i8 = 0
        iterations: i32 = 0
        salt: bytes = b""
        salted_password: bytes = b""

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResponse(Message):
    KEY = 51
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class AlterUserScramCredentialsResult(Struct):
        user: str = ""
        error_code: i16 = 0
        error_message: str | None = ""

    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResult] = []
