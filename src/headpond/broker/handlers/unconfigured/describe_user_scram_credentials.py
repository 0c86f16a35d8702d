"""DescribeUserScramCredentials: v0.

Behaviour   No user has credentials: a list of names gets RESOURCE_NOT_FOUND for each, DUPLICATE_RESOURCE for one that
            is there twice; null or an empty list asks for all, who are none.
Not done    SCRAM: AlterUserScramCredentials is not advertised.
"""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import ErrorCode, shortened
from headpond.protocol.schema.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

API = Api(key=50, versions=range(1), name="DescribeUserScramCredentials")

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


async def handle(ctx: Context, request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    times = await ctx.counted(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        results=[_result(name, count) async for name, count in ctx.in_slices(times.items())]
    )


def _result(name: str, count: int) -> Result:
    if count > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return Result(user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=shortened(message))
    message = f"Attempt to describe a user credential that does not exist: {name}"
    return Result(user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=shortened(message))
