"""WriteTxnMarkers (API key 27): v1-2."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, i64, versions


class WriteTxnMarkersRequest(Message):
    KEY = 27
    VERSIONS = versions(1, 2)
    FLEXIBLE = 1

    class WritableTxnMarker(Struct):
        producer_id: i64 = 0
        producer_epoch: i16 = 0
        transaction_result: bool = False
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = []
        coordinator_epoch: i32 = 0
        transaction_version: Annotated[i8, "2+ ignorable"] = 0

    class WritableTxnMarkerTopic(Struct):
        name: str = ""
        partition_indexes: list[i32] = []

    markers: list[WritableTxnMarker] = []


class WriteTxnMarkersResponse(Message):
    KEY = 27
    VERSIONS = versions(1, 2)
    FLEXIBLE = 1

    class WritableTxnMarkerResult(Struct):
        producer_id: i64 = 0
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = []

    class WritableTxnMarkerTopicResult(Struct):
        name: str = ""
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = []

    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0

    markers: list[WritableTxnMarkerResult] = []
