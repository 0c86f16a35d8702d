"""EndTxn: v0-v5.

Behaviour   Answered when the outcome is durable; from then on it is certain, and the markers follow. A retry is
            confirmed, the opposite end refused (``coordination/transactions/endings.py`` has the tables).
Versions    v2 PRODUCER_FENCED · v4 TRANSACTION_ABORTABLE · v5 each end raises the epoch and answers with what the
            producer goes on with (KIP-890)
"""

from __future__ import annotations

from headpond.broker.handlers.transactions import common as transactions
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.home import Producer
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE = 2
EPOCH_BUMP_SINCE = 5


async def handle(ctx: Context, request: EndTxnRequest) -> EndTxnResponse:
    if not is_allowed(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        return await transactions.write(
            ctx,
            request.transactional_id,
            lambda machine: machine.end(
                request.transactional_id,
                Producer(request.producer_id, request.producer_epoch),
                is_commit=request.committed,
                client_version=transactions.VERSION_2 if ctx.version >= EPOCH_BUMP_SINCE else transactions.VERSION_1,
            ),
        )
    except BrokerError as refused:
        return EndTxnResponse(error_code=transactions.for_clients_before(ctx, FENCED_SINCE, refused.code))
