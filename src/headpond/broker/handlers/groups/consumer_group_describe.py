"""ConsumerGroupDescribe: v0-v1.

Behaviour   Consumer groups (KIP-848): epochs, members, what each holds and should hold. Groups that are not there, or
            are classic ones, are GROUP_ID_NOT_FOUND. What is told is committed.
Versions    v1 member types
"""

from __future__ import annotations

from headpond.broker.handlers.groups.consumer_group_heartbeat import is_served
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_ROW
from headpond.broker.security.authorizer import Operation, ResourceType, authorized_operations, is_allowed
from headpond.coordination.slices import in_one_slice
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

A_MEMBER = 2 * A_ROW
"""It has two assignments."""

Row = ConsumerGroupDescribeResponse.DescribedGroup


async def handle(ctx: Context, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    rows, refused = [], []
    with_members: dict[str, Row] = {}
    async for group_id in ctx.in_slices(request.group_ids):
        if not is_served(ctx):
            rows.append(Row(error_code=ErrorCode.UNSUPPORTED_VERSION, group_id=group_id))
        elif not is_allowed(ctx, Operation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(Row(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id))
        elif group_id in with_members:  # a name that is repeated is answered again, and put together once
            rows.append(with_members[group_id])
        else:
            row = await _described(ctx, request, group_id)
            if row.members:
                with_members[group_id] = row
                await ctx.spend(A_MEMBER * len(row.members))
            rows.append(row)
    return ConsumerGroupDescribeResponse(groups=refused + rows)


async def _described(ctx: Context, request: ConsumerGroupDescribeRequest, group_id: str) -> Row:
    if not group_id:
        return Row(error_code=ErrorCode.INVALID_GROUP_ID, group_id=group_id)
    try:
        row = await ctx.broker.groups.settled(
            group_id, lambda machine: in_one_slice(lambda: machine.consumer.describe(group_id)), ctx.finish
        )
    except BrokerError as failed:
        return Row(error_code=failed.code, group_id=group_id)
    if row.error_code:
        return row
    if request.include_authorized_operations:
        row.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group_id)
    if not _may_see_topics(ctx, row):
        return Row(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has described topic(s) that the client is not authorized to describe.",
            group_id=group_id,
        )
    return row


def _may_see_topics(ctx: Context, row: Row) -> bool:
    names = {
        topic.topic_name
        for member in row.members
        for held in (member.assignment, member.target_assignment)
        for topic in held.topic_partitions
    }
    return all(is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, name) for name in sorted(names))
