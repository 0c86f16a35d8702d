"""CreateDelegationToken: v1-v3.

Behaviour   DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: on a listener without authentication anybody could ask in anybody's
            name. The answer names the owner that was asked for, else who asked.
Versions    v2 flexible · v3 an owner who is not the requester (KIP-373).
Not done    delegation tokens.
"""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.model import ErrorCode
from headpond.protocol.schema.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

API = Api(key=38, versions=range(1, 4), name="CreateDelegationToken")

OWNER_SINCE = 3
NEVER = -1


async def handle(ctx: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    asker = ctx.principal
    is_for_somebody = bool(request.owner_principal_name)
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=(request.owner_principal_type or "") if is_for_somebody else asker.kind,
        principal_name=(request.owner_principal_name or "") if is_for_somebody else asker.name,
        token_requester_principal_type=asker.kind if ctx.version >= OWNER_SINCE else "",
        token_requester_principal_name=asker.name if ctx.version >= OWNER_SINCE else "",
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
