"""DescribeTransactions: v0.

Behaviour   Each id by itself: its state, producer and partitions as of the last committed record, or why not. Topics
            that the asker may not see are left out.
"""

from __future__ import annotations

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.handlers import transactions
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.coordination.transactions.listing import refused_description
from penstock.model import BrokerError, ErrorCode
from penstock.protocol.schema.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

API = Api(key=65, versions=range(1), name="DescribeTransactions")


async def handle(ctx: Context, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_described(ctx, transactional_id) for transactional_id in request.transactional_ids]
    )


def _described(ctx: Context, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return refused_description(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        answer = transactions.read(ctx, transactional_id, lambda machine: machine.describe(transactional_id))
    except BrokerError as refused:
        return refused_description(transactional_id, refused.code)
    answer.topics = [
        topic for topic in answer.topics if is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
    ]
    return answer
