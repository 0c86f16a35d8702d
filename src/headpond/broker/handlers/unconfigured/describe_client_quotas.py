"""DescribeClientQuotas: v0-v1.

Behaviour   No client has a quota, so every question that makes sense finds none; one that makes none is refused.
Versions    v1 flexible.
Not done    quotas: AlterClientQuotas is not advertised.
"""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

API = Api(key=48, versions=range(2), name="DescribeClientQuotas")

EXACT, DEFAULT, ANY = 0, 1, 2
IP = "ip"
KINDS = frozenset({"user", "client-id", IP})


async def handle(ctx: Context, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    if not is_allowed(ctx, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    try:
        _check(request)
    except BrokerError as error:
        return _refused(error.code, error.message)
    return DescribeClientQuotasResponse()


def _check(request: DescribeClientQuotasRequest) -> None:
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


def _refused(error: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)
