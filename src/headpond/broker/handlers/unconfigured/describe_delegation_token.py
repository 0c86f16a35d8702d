"""DescribeDelegationToken: v1-v3.

Behaviour   DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: no listener authenticates anybody, so there are no tokens.
Versions    v2 flexible · v3 who asked for a token (KIP-373).
Not done    delegation tokens.
"""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.model import ErrorCode
from headpond.protocol.schema.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

API = Api(key=41, versions=range(1, 4), name="DescribeDelegationToken")


async def handle(ctx: Context, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
