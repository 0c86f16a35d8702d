"""RenewDelegationToken: v1-v2.

Behaviour   DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: no listener authenticates anybody, so there are no tokens.
Versions    v2 flexible.
Not done    delegation tokens.
"""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.model import ErrorCode
from headpond.protocol.schema.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

API = Api(key=39, versions=range(1, 3), name="RenewDelegationToken")

NEVER = -1


async def handle(ctx: Context, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NEVER
    )
