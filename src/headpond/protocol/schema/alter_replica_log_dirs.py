"""AlterReplicaLogDirs (API key 34): v1-2."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, versions


class AlterReplicaLogDirsRequest(Message):
    KEY = 34
    VERSIONS = versions(1, 2)
    FLEXIBLE = 2

    class AlterReplicaLogDir(Struct):
        path: str = ""
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = []

    class AlterReplicaLogDirTopic(Struct):
        name: str = ""
        partitions: list[i32] = []

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirsResponse(Message):
    KEY = 34
    VERSIONS = versions(1, 2)
    FLEXIBLE = 2

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = ""
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = []

    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0

    throttle_time_ms: i32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
