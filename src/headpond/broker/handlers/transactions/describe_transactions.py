"""DescribeTransactions: v0.

Behaviour   Each id by itself: its state, producer and partitions as of the last committed record, or why not. Topics
            that the asker may not see are left out.
"""

from __future__ import annotations

from headpond.broker.handlers.transactions import common as transactions
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.transactions.listing import refused_description
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

Row = DescribeTransactionsResponse.TransactionState


async def handle(ctx: Context, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    with_topics: dict[str, Row] = {}
    rows = []
    async for transactional_id in ctx.in_slices(request.transactional_ids):
        row = with_topics.get(transactional_id)
        if row is None:
            row = await _described(ctx, transactional_id)
            if row.topics:  # an id that is repeated is answered again, and put together once
                with_topics[transactional_id] = row
        rows.append(row)
    return DescribeTransactionsResponse(transaction_states=rows)


async def _described(ctx: Context, transactional_id: str) -> Row:
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return refused_description(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        answer = transactions.read(ctx, transactional_id, lambda machine: machine.describe(transactional_id))
    except BrokerError as refused:
        return refused_description(transactional_id, refused.code)
    answer.topics = [
        topic
        async for topic in ctx.in_slices(answer.topics)
        if is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
    ]
    await ctx.spend(A_LOOK * sum([len(topic.partitions) for topic in answer.topics]))
    return answer
