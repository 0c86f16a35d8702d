"""AddPartitionsToTxn: v0-v5.

Behaviour   All partitions of a transaction are added, or none: one that does not exist, or that may not be written,
            leaves the others OPERATION_NOT_ATTEMPTED. Internal topics are not for clients to add.
Versions    v2 PRODUCER_FENCED · v4 several transactions, from other brokers only: they add on behalf of version-2
            clients, or only verify what a version-1 client added (KIP-890) · v5 TRANSACTION_ABORTABLE
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from headpond.broker.handlers.transactions import common as transactions
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.cluster.names import is_internal
from headpond.coordination.home import Producer
from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.schema.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

FENCED_SINCE = 2
BROKERS_SINCE = 4
TRANSACTIONS_AT_ONCE = 100
"""Whose partitions are added side by side."""

_Asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_Codes = dict[TopicPartition, ErrorCode]


async def handle(ctx: Context, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if ctx.version < BROKERS_SINCE:
        asked = _Asked(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _results(ctx, asked))
    if not is_allowed(ctx, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response = AddPartitionsToTxnResponse()
    async for some in ctx.in_parts(request.transactions, TRANSACTIONS_AT_ONCE):  # they become durable together
        results = await asyncio.gather(*(_results(ctx, each) for each in some))
        response.results_by_transaction += [
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=topics
            )
            for each, topics in zip(some, results, strict=True)
        ]
    return response


async def _results(ctx: Context, asked: _Asked) -> list[_TopicResult]:
    partitions = [
        TopicPartition(topic.name, index)
        async for topic in ctx.in_slices(asked.topics)
        async for index in ctx.in_slices(topic.partitions, A_LOOK)
    ]
    is_client = ctx.version < BROKERS_SINCE
    if is_client and not is_allowed(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, asked.transactional_id):
        return await _answer(ctx, asked, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    problems = await _problems(ctx, partitions)
    if problems:
        return await _answer(ctx, asked, ErrorCode.OPERATION_NOT_ATTEMPTED, problems)
    distinct = list(await ctx.counted(partitions))  # they exist: so there are no more than the broker has
    if asked.verify_only:
        return await _answer(ctx, asked, ErrorCode.NONE, _verified(ctx, asked, distinct))
    return await _answer(ctx, asked, await _added(ctx, asked, distinct))


async def _problems(ctx: Context, partitions: Iterable[TopicPartition]) -> _Codes:
    found: _Codes = {}
    async for tp in ctx.in_slices(partitions, A_LOOK):
        if ctx.version < BROKERS_SINCE and (
            is_internal(tp.topic) or not is_allowed(ctx, Operation.WRITE, ResourceType.TOPIC, tp.topic)
        ):
            found[tp] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif ctx.broker.image.partition(tp.topic, tp.partition) is None:
            found[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found


async def _added(ctx: Context, asked: _Asked, partitions: Sequence[TopicPartition]) -> ErrorCode:
    try:
        await transactions.write(
            ctx,
            asked.transactional_id,
            lambda machine: machine.add_partitions(
                asked.transactional_id,
                Producer(asked.producer_id, asked.producer_epoch),
                partitions,
                client_version=transactions.VERSION_1 if ctx.version < BROKERS_SINCE else transactions.VERSION_2,
            ),
        )
    except BrokerError as refused:
        return transactions.for_clients_before(ctx, FENCED_SINCE, refused.code)
    return ErrorCode.NONE


def _verified(ctx: Context, asked: _Asked, partitions: Sequence[TopicPartition]) -> _Codes:
    producer = Producer(asked.producer_id, asked.producer_epoch)
    try:
        return transactions.read(
            ctx, asked.transactional_id, lambda machine: machine.verify(asked.transactional_id, producer, partitions)
        )
    except BrokerError as refused:
        return dict.fromkeys(partitions, refused.code)


async def _answer(ctx: Context, asked: _Asked, code: ErrorCode, codes: _Codes | None = None) -> list[_TopicResult]:
    """In the order that was asked in; ``code`` for those that have none of their own in ``codes``."""
    codes = codes or {}
    return [
        _TopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes.get(TopicPartition(topic.name, index), code)
                )
                async for index in ctx.in_slices(topic.partitions)
            ],
        )
        async for topic in ctx.in_slices(asked.topics)
    ]
