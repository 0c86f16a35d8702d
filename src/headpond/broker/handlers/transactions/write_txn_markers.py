"""WriteTxnMarkers: v1-v2.

Behaviour   A transaction coordinator's markers, each appended to each of its partitions and answered when all are
            durable and visible. Each partition succeeds or fails by itself: an older producer epoch is refused with
            INVALID_PRODUCER_EPOCH, an older coordinator with TRANSACTION_COORDINATOR_FENCED. The same marker again is
            appended again, and does no harm. `headpond transactions abort` uses it for transactions that hang.
Versions    v2 the transaction's version (KIP-1228): from 2 on the marker's epoch must be above that of the open
            transaction, so that a late marker can't end the next one.
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.transactions.markers import Marker
from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.schema.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
MarkerResult = WriteTxnMarkersResponse.WritableTxnMarkerResult


async def handle(ctx: Context, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    if not is_allowed(ctx, Operation.ALTER, ResourceType.CLUSTER) and not is_allowed(
        ctx, Operation.CLUSTER_ACTION, ResourceType.CLUSTER
    ):
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results: dict[int, dict[TopicPartition, ErrorCode]] = {}
    async for wanted in ctx.in_slices(request.markers):
        codes = await _write(ctx, wanted)
        if codes:  # a producer with nowhere to write is not answered for, as in Kafka
            results.setdefault(wanted.producer_id, {}).update(codes)
    return WriteTxnMarkersResponse(
        markers=[
            MarkerResult(producer_id=producer_id, topics=await _topics(ctx, codes))
            async for producer_id, codes in ctx.in_slices(results.items())
        ]
    )


async def _write(ctx: Context, wanted: WriteTxnMarkersRequest.WritableTxnMarker) -> dict[TopicPartition, ErrorCode]:
    partitions = {
        TopicPartition(topic.name, index): None
        async for topic in ctx.in_slices(wanted.topics, A_LOOK)
        async for index in ctx.in_slices(topic.partition_indexes, A_LOOK)
    }
    ctx.leave()  # it waits for the disk now
    marker = Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )
    return await ctx.broker.markers.write(marker, partitions)


async def _topics(ctx: Context, codes: dict[TopicPartition, ErrorCode]) -> list[TopicResult]:
    rows: dict[str, list[PartitionResult]] = {}
    async for tp, code in ctx.in_slices(codes.items()):
        rows.setdefault(tp.topic, []).append(PartitionResult(partition_index=tp.partition, error_code=code))
    return [TopicResult(name=name, partitions=partitions) for name, partitions in rows.items()]
