"""InitProducerId: v0-v5.

Behaviour   An idempotent producer (no transactional id) gets a new id, at epoch 0, also when it
            says which id it has: nothing is remembered about it that could be bumped (KIP-360). Ids come in blocks from
            the metadata store, so most requests touch memory only.
            A transactional id keeps its producer id; each start raises the epoch, which fences whoever had the one
            before. A transaction that is still open is aborted first: CONCURRENT_TRANSACTIONS until that is done.
Versions    v3 producer id and epoch (KIP-360) · v4 PRODUCER_FENCED · v5 as v4
"""

from __future__ import annotations

from headpond.broker.handlers.transactions import common as transactions
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
FENCED_SINCE = 4


async def handle(ctx: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    error = _problem(ctx, request)
    if error is not None:
        return _refused(error)
    try:
        if request.transactional_id is None:
            return InitProducerIdResponse(
                producer_id=await ctx.broker.metadata_writer.producer_ids.take(), producer_epoch=0
            )
        if request.transactional_id:  # most transactional producers need no new id; if this one does, there is one
            await ctx.broker.metadata_writer.producer_ids.have_some()
        return await transactions.write(
            ctx, request.transactional_id, lambda machine: machine.init_producer_id(request)
        )
    except BrokerError as refused:
        return _refused(transactions.for_clients_before(ctx, FENCED_SINCE, refused.code))


def _problem(ctx: Context, request: InitProducerIdRequest) -> ErrorCode | None:
    transactional_id = request.transactional_id
    if transactional_id is not None:
        if not is_allowed(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not _may_be_idempotent(ctx):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if transactional_id and not 0 < request.transaction_timeout_ms <= ctx.broker.settings.transactions.timeout_ms_max:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT  # wherever the id is coordinated
    return None


def _may_be_idempotent(ctx: Context) -> bool:
    return is_allowed(ctx, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER) or ctx.broker.authorizer.allows_somewhere(
        ctx.principal, ctx.peer_host, Operation.WRITE, ResourceType.TOPIC
    )


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
