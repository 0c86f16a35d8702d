"""AddOffsetsToTxn: v0-v4.

Behaviour   Puts the partition of ``__consumer_offsets`` that the group belongs to into the transaction: the offsets
            that TxnOffsetCommit brings count when it is committed. The group need not exist.
Versions    v2 PRODUCER_FENCED · v4 TRANSACTION_ABORTABLE. Clients of transaction version 2 do without it.
"""

from __future__ import annotations

from headpond.broker.handlers.transactions import common as transactions
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.cluster.names import OFFSETS_TOPIC
from headpond.coordination.home import Producer
from headpond.coordination.partition import partition_for
from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.schema.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE = 2


async def handle(ctx: Context, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    if not is_allowed(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    partition = offsets_partition(ctx, request.group_id)
    try:
        await transactions.write(
            ctx,
            request.transactional_id,
            lambda machine: machine.add_partitions(
                request.transactional_id,
                Producer(request.producer_id, request.producer_epoch),
                (partition,),
                client_version=transactions.VERSION_1,
            ),
        )
    except BrokerError as refused:
        return AddOffsetsToTxnResponse(error_code=transactions.for_clients_before(ctx, FENCED_SINCE, refused.code))
    return AddOffsetsToTxnResponse()


def offsets_partition(ctx: Context, group_id: str) -> TopicPartition:
    """Where a group's offsets go, also before there are any."""
    topic = ctx.broker.image.topics.get(OFFSETS_TOPIC)
    count = len(topic.partitions) if topic is not None else ctx.broker.settings.groups.topic_partitions
    return TopicPartition(OFFSETS_TOPIC, partition_for(group_id, count))
