"""FindCoordinator (API key 10): v0-6."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class FindCoordinatorRequest(Message):
    KEY = 10
    VERSIONS = versions(0, 6)
    FLEXIBLE = 3

    key: Annotated[str, "0-3"] = ""
    key_type: Annotated[i8, "1+"] = 0
    coordinator_keys: Annotated[list[str], "4+"] = []


class FindCoordinatorResponse(Message):
    KEY = 10
    VERSIONS = versions(0, 6)
    FLEXIBLE = 3

    class Coordinator(Struct):
        key: str = ""
        node_id: i32 = 0
        host: str = ""
        port: i32 = 0
        error_code: i16 = 0
        error_message: str | None = ""

    throttle_time_ms: Annotated[i32, "1+ ignorable"] = 0
    error_code: Annotated[i16, "0-3"] = 0
    error_message: Annotated[str | None, "1-3 ignorable"] = ""
    node_id: Annotated[i32, "0-3"] = 0
    host: Annotated[str, "0-3"] = ""
    port: Annotated[i32, "0-3"] = 0
    coordinators: Annotated[list[Coordinator], "4+"] = []
