"""DescribeCluster (API key 60): v0-2."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class DescribeClusterRequest(Message):
    KEY = 60
    VERSIONS = versions(0, 2)
    FLEXIBLE = 0

    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[i8, "1+"] = 1
    include_fenced_brokers: Annotated[bool, "2+"] = False


class DescribeClusterResponse(Message):
    KEY = 60
    VERSIONS = versions(0, 2)
    FLEXIBLE = 0

    class DescribeClusterBroker(Struct):
        broker_id: i32 = 0
        host: str = ""
        port: i32 = 0
        rack: str | None = None
        is_fenced: Annotated[bool, "2+"] = False

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    endpoint_type: Annotated[i8, "1+"] = 1
    cluster_id: str = ""
    controller_id: i32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: i32 = -2_147_483_648
