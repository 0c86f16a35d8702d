"""TxnOffsetCommit: v0-v5.

Behaviour   Offsets on behalf of a transaction: pending until its marker, then they count or never happened. The
            partition of __consumer_offsets that they go to must be in the transaction: a client of v4 or older has put
            it there itself (AddOffsetsToTxn), which is verified; for v5 it is added on the way (KIP-890). It must still
            be there when they are written. Topics and partitions that do not exist are refused one by one.
Versions    v2 leader epochs · v3 member and generation (KIP-447), flexible · v4 TRANSACTION_ABORTABLE · v5 adds
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from headpond.broker.handlers.topics.topic_answers import answered_in_parts
from headpond.broker.handlers.transactions.add_offsets_to_txn import offsets_partition
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.groups.machine import GroupMachine
from headpond.coordination.home import Producer
from headpond.coordination.runtime import Decision
from headpond.coordination.transactions.verifier import (
    OFFSET_COMMIT_ADDS_SINCE,
    OFFSET_COMMIT_KNOWS_ABORTABLE_SINCE,
    verification_error,
)
from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

Asked = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
Answered = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
Row = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


async def handle(ctx: Context, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    async def serve(some: list[Asked]) -> tuple[list[Answered], list[Answered]]:
        if not is_allowed(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            return _all(some, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), []
        if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
            return _all(some, ErrorCode.GROUP_AUTHORIZATION_FAILED), []
        refused, good = _sorted_out(ctx, some)
        if not good:
            return refused, []
        try:
            return refused, await _commit(ctx, replace(request, topics=good))
        except BrokerError as failed:
            return refused, _all(good, failed.code)

    answers = await answered_in_parts(
        ctx, request.topics, lambda topic, partitions: Asked(topic.name, partitions), serve
    )
    return TxnOffsetCommitResponse(topics=answers)


async def _commit(ctx: Context, request: TxnOffsetCommitRequest) -> list[Answered]:
    if not request.group_id:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID)
    if _is_verified(ctx):
        await _require_in_transaction(ctx, request)
    answer = await ctx.broker.groups.write(request.group_id, lambda machine: _decided(ctx, request, machine))
    return answer.topics


def _is_verified(ctx: Context) -> bool:
    """As for Produce: ``transaction.partition.verification.enable`` may say that clients are believed."""
    return ctx.version >= OFFSET_COMMIT_ADDS_SINCE or ctx.broker.transactions.settings().verifies_partitions


async def _require_in_transaction(ctx: Context, request: TxnOffsetCommitRequest) -> None:
    partition, producer = _of(ctx, request)
    verifier = ctx.broker.transactions.verifier
    ask = verifier.add if ctx.version >= OFFSET_COMMIT_ADDS_SINCE else verifier.verify
    _require_none((await ask(request.transactional_id, producer, (partition,)))[partition], ctx.version)


def _decided(ctx: Context, request: TxnOffsetCommitRequest, machine: GroupMachine) -> Decision[TxnOffsetCommitResponse]:
    if _is_verified(ctx):  # once more: it may have ended while room was made, and the offsets would be pending for ever
        partition, producer = _of(ctx, request)
        transactional_id = request.transactional_id
        codes = ctx.broker.transactions.read(
            transactional_id, lambda transactions: transactions.verify(transactional_id, producer, (partition,))
        )
        _require_none(codes[partition], ctx.version)
    return machine.offsets.commit_in_transaction(request, ctx.version)


def _of(ctx: Context, request: TxnOffsetCommitRequest) -> tuple[TopicPartition, Producer]:
    return offsets_partition(ctx, request.group_id), Producer(request.producer_id, request.producer_epoch)


def _require_none(code: ErrorCode, version: int) -> None:
    if code != ErrorCode.NONE:
        knows_abortable = version >= OFFSET_COMMIT_KNOWS_ABORTABLE_SINCE
        raise BrokerError(verification_error(ErrorCode(code), knows_abortable=knows_abortable))


def _sorted_out(ctx: Context, topics: Iterable[Asked]) -> tuple[list[Answered], list[Asked]]:
    """What can't be committed, answered; and the rest."""
    refused, good = [], []
    for topic in topics:
        known = ctx.broker.image.topics.get(topic.name)
        if not is_allowed(ctx, Operation.READ, ResourceType.TOPIC, topic.name):
            refused += _all([topic], ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        count = 0 if known is None else len(known.partitions)
        missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if missing:
            refused += _all([Asked(topic.name, missing)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        here = [each for each in topic.partitions if 0 <= each.partition_index < count]
        if here:
            good.append(Asked(topic.name, here))
    return refused, good


def _all(topics: Iterable[Asked], error: ErrorCode) -> list[Answered]:
    return [Answered(topic.name, [Row(each.partition_index, error) for each in topic.partitions]) for topic in topics]
