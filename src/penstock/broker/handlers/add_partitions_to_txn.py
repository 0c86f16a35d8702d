"""AddPartitionsToTxn: v0-v5.

Behaviour   All partitions of a transaction are added, or none: one that does not exist, or that may not be written,
            leaves the others OPERATION_NOT_ATTEMPTED. Internal topics are not for clients to add.
Versions    v2 PRODUCER_FENCED · v4 several transactions, from other brokers only: they add on behalf of version-2
            clients, or only verify what a version-1 client added (KIP-890) · v5 TRANSACTION_ABORTABLE
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.handlers import transactions
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.cluster.names import is_internal
from penstock.coordination.home import Producer
from penstock.model import BrokerError, ErrorCode, TopicPartition
from penstock.protocol.schema.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

API = Api(key=24, versions=range(6), name="AddPartitionsToTxn")

FENCED_SINCE = 2
BROKERS_SINCE = 4

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
    results = await asyncio.gather(*(_results(ctx, each) for each in request.transactions))
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=topics
            )
            for each, topics in zip(request.transactions, results, strict=True)
        ]
    )


async def _results(ctx: Context, asked: _Asked) -> list[_TopicResult]:
    partitions = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions]
    is_client = ctx.version < BROKERS_SINCE
    if is_client and not is_allowed(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, asked.transactional_id):
        return _answer(asked, dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    problems = _problems(ctx, partitions)
    if problems:
        return _answer(asked, dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | problems)
    if asked.verify_only:
        return _answer(asked, _verified(ctx, asked, partitions))
    return _answer(asked, await _added(ctx, asked, partitions))


def _problems(ctx: Context, partitions: Iterable[TopicPartition]) -> _Codes:
    found: _Codes = {}
    for tp in partitions:
        if ctx.version < BROKERS_SINCE and (
            is_internal(tp.topic) or not is_allowed(ctx, Operation.WRITE, ResourceType.TOPIC, tp.topic)
        ):
            found[tp] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif ctx.broker.image.partition(tp.topic, tp.partition) is None:
            found[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found


async def _added(ctx: Context, asked: _Asked, partitions: Sequence[TopicPartition]) -> _Codes:
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
        return dict.fromkeys(partitions, transactions.for_clients_before(ctx, FENCED_SINCE, refused.code))
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _verified(ctx: Context, asked: _Asked, partitions: Sequence[TopicPartition]) -> _Codes:
    producer = Producer(asked.producer_id, asked.producer_epoch)
    try:
        return transactions.read(
            ctx, asked.transactional_id, lambda machine: machine.verify(asked.transactional_id, producer, partitions)
        )
    except BrokerError as refused:
        return dict.fromkeys(partitions, refused.code)


def _answer(asked: _Asked, codes: _Codes) -> list[_TopicResult]:
    """In the order that was asked in."""
    return [
        _TopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes[TopicPartition(topic.name, index)]
                )
                for index in topic.partitions
            ],
        )
        for topic in asked.topics
    ]
