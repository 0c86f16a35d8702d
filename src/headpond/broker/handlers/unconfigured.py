"""APIs of features that are not set up: each answers as a Kafka does that is not configured for it. A function is named
as its API, and says which versions it serves.

ACLs        SECURITY_DISABLED: there is no authorizer. An ACL, or a filter, with unknown elements closes the connection.
Quotas      No client has one: every question that makes sense finds none; one that makes none is refused.
SCRAM       No user has credentials.
Tokens      DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: on a listener without authentication anybody could ask in anybody's
            name.
SASL        ILLEGAL_SASL_STATE, on a listener without it.
Not done    all of it: AlterClientQuotas and AlterUserScramCredentials are not advertised.
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.acl_codes import require_known
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode, shortened
from headpond.protocol.schema.create_acls import CreateAclsRequest, CreateAclsResponse
from headpond.protocol.schema.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from headpond.protocol.schema.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from headpond.protocol.schema.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from headpond.protocol.schema.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from headpond.protocol.schema.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from headpond.protocol.schema.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from headpond.protocol.schema.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from headpond.protocol.schema.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from headpond.protocol.schema.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from headpond.protocol.schema.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

# --- ACLs

NO_AUTHORIZER = "No Authorizer is configured."
NO_AUTHORIZER_ON_THE_BROKER = "No Authorizer is configured on the broker"
Creation = CreateAclsResponse.AclCreationResult
Deletion = DeleteAclsResponse.DeleteAclsFilterResult


async def describe_acls(ctx: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """DescribeAcls: v1-v3. v2 flexible · v3 users as resources."""
    require_known(
        resource_type=request.resource_type_filter,
        pattern_type=request.pattern_type_filter,
        operation=request.operation,
        permission=request.permission_type,
    )
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_ON_THE_BROKER)


async def create_acls(ctx: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    """CreateAcls: v1-v3. v2 flexible · v3 users as resources."""
    refused = []
    async for acl in ctx.in_slices(request.creations):
        require_known(
            resource_type=acl.resource_type,
            pattern_type=acl.resource_pattern_type,
            operation=acl.operation,
            permission=acl.permission_type,
        )
        refused.append(Creation(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER))
    return CreateAclsResponse(results=refused)


async def delete_acls(ctx: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """DeleteAcls: v1-v3. v2 flexible · v3 users as resources."""
    refused = []
    async for wanted in ctx.in_slices(request.filters):
        require_known(
            resource_type=wanted.resource_type_filter,
            pattern_type=wanted.pattern_type_filter,
            operation=wanted.operation,
            permission=wanted.permission_type,
        )
        refused.append(Deletion(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER))
    return DeleteAclsResponse(filter_results=refused)


# --- quotas

EXACT, DEFAULT, ANY = 0, 1, 2
IP = "ip"
KINDS = frozenset({"user", "client-id", IP})


async def describe_client_quotas(ctx: Context, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """DescribeClientQuotas: v0-v1. v1 flexible."""
    if not is_allowed(ctx, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        return _no_quotas(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    try:
        _check_components(request)
    except BrokerError as error:
        return _no_quotas(error.code, error.message)
    return DescribeClientQuotasResponse()


def _check_components(request: DescribeClientQuotasRequest) -> None:
    seen: set[str] = set()
    for component in request.components:
        kind = component.entity_type
        if not kind:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in seen:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
            )
        if kind not in KINDS:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component.match_type, component.match)
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        )


def _check_match(kind: int, match: str | None) -> None:
    problem = None
    if kind == EXACT:
        if match is None:
            problem = "Request specified MATCH_TYPE_EXACT, but set match string to null."
    elif kind in (DEFAULT, ANY):
        if match is not None:
            word = "MATCH_TYPE_DEFAULT" if kind == DEFAULT else "MATCH_TYPE_SPECIFIED"
            problem = f"Request specified {word}, but also specified a match string."
    else:
        problem = f"Unknown match type {kind}"
    if problem is not None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)


def _no_quotas(error: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)


# --- SCRAM

Credentials = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


async def describe_user_scram_credentials(
    ctx: Context, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """DescribeUserScramCredentials: v0. A list of names gets RESOURCE_NOT_FOUND for each, DUPLICATE_RESOURCE for one
    that is there twice; null or an empty list asks for all, who are none."""
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    times = await ctx.counted(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        results=[_no_credentials(name, count) async for name, count in ctx.in_slices(times.items())]
    )


def _no_credentials(name: str, count: int) -> Credentials:
    if count > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return Credentials(user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=shortened(message))
    message = f"Attempt to describe a user credential that does not exist: {name}"
    return Credentials(user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=shortened(message))


# --- delegation tokens

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
OWNER_SINCE = 3
NEVER = -1


async def create_delegation_token(ctx: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    """CreateDelegationToken: v1-v3. v2 flexible · v3 an owner who is not the requester (KIP-373). The answer names the
    owner that was asked for, else who asked."""
    asker = ctx.principal
    is_for_somebody = bool(request.owner_principal_name)
    return CreateDelegationTokenResponse(
        error_code=NOT_ALLOWED,
        principal_type=(request.owner_principal_type or "") if is_for_somebody else asker.kind,
        principal_name=(request.owner_principal_name or "") if is_for_somebody else asker.name,
        token_requester_principal_type=asker.kind if ctx.version >= OWNER_SINCE else "",
        token_requester_principal_name=asker.name if ctx.version >= OWNER_SINCE else "",
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )


async def renew_delegation_token(ctx: Context, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    """RenewDelegationToken: v1-v2. v2 flexible."""
    return RenewDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=NEVER)


async def expire_delegation_token(ctx: Context, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    """ExpireDelegationToken: v1-v2. v2 flexible."""
    return ExpireDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=NEVER)


async def describe_delegation_token(
    ctx: Context, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """DescribeDelegationToken: v1-v3. v2 flexible · v3 who asked for a token (KIP-373)."""
    return DescribeDelegationTokenResponse(error_code=NOT_ALLOWED)


# --- SASL


async def sasl_handshake(ctx: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """SaslHandshake: v0-v1."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


async def sasl_authenticate(ctx: Context, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """SaslAuthenticate: v0-v2. Refused in Kafka's words."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
