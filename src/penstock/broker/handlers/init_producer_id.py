"""InitProducerId: v0-v5.

Behaviour   An idempotent producer (no transactional id) gets an id that nobody had before, at epoch 0, also when it
            says which id it has: nothing is remembered about it that could be bumped (KIP-360). Ids come in blocks from
            the metadata store, so most requests touch memory only.
Versions    v3 producer id and epoch (KIP-360) · v4 PRODUCER_FENCED · v5 as v4
Not done    transactional ids: NOT_COORDINATOR, as from a Kafka without a transaction log, until transactions are built.
"""

from __future__ import annotations

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.model import BrokerError, ErrorCode
from penstock.protocol.schema.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

API = Api(key=22, versions=range(6), name="InitProducerId")

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
TRANSACTION_TIMEOUT_MS_MAX = 900_000
"""Kafka's ``transaction.max.timeout.ms``."""


async def handle(ctx: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    error = _problem(ctx, request)
    if error is not None:
        return _refused(error)
    try:
        producer_id = await ctx.broker.controller.producer_ids.take()
    except BrokerError as failed:
        return _refused(failed.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _problem(ctx: Context, request: InitProducerIdRequest) -> ErrorCode | None:
    transactional_id = request.transactional_id
    if transactional_id is not None:
        if not is_allowed(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not _may_be_idempotent(ctx):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if transactional_id is None:
        return None
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.transaction_timeout_ms <= TRANSACTION_TIMEOUT_MS_MAX:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NOT_COORDINATOR


def _may_be_idempotent(ctx: Context) -> bool:
    return is_allowed(ctx, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER) or ctx.broker.authorizer.allows_somewhere(
        ctx.principal, ctx.peer_host, Operation.WRITE, ResourceType.TOPIC
    )


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
