"""FindCoordinator: v0-v6.

Behaviour   There is no coordinator yet, neither for groups nor for transactions nor for share groups: every key is
            answered with COORDINATOR_NOT_AVAILABLE, which clients retry. The API is served from the start because
            librdkafka compresses with lz4 only where it sees it.
Versions    v1 key type · v3 flexible · v4 several keys (KIP-699) · v6 share groups (KIP-932)
"""

from __future__ import annotations

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.cluster.ids import parse_id
from penstock.model import ErrorCode
from penstock.protocol.schema.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

API = Api(key=10, versions=range(7), name="FindCoordinator")

GROUP, TRANSACTION, SHARE = 0, 1, 2
SEVERAL_KEYS_SINCE = 4
SHARE_SINCE = 6

NO_NODE, NO_HOST, NO_PORT = -1, "", -1
_MESSAGES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message was sent to "
        "an incompatible broker. See the broker logs for more details."
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
}


async def handle(ctx: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    kind = request.key_type
    if ctx.version < SEVERAL_KEYS_SINCE:
        error = _error(ctx, kind, request.key)
        return FindCoordinatorResponse(
            error_code=error, error_message=_MESSAGES[error], node_id=NO_NODE, host=NO_HOST, port=NO_PORT
        )
    is_known = kind in (GROUP, TRANSACTION, SHARE)
    coordinators = []
    for key in request.coordinator_keys:
        error = _error(ctx, kind, key)
        coordinators.append(
            FindCoordinatorResponse.Coordinator(
                key=key,
                node_id=NO_NODE,
                host=NO_HOST,
                port=NO_PORT,
                error_code=error,
                error_message="" if is_known else _MESSAGES[error],  # Kafka leaves it empty, except for unknown types
            )
        )
    return FindCoordinatorResponse(coordinators=coordinators)


def _error(ctx: Context, kind: int, key: str) -> ErrorCode:
    if kind == GROUP:
        if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.GROUP, key):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif kind == TRANSACTION:
        if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif kind == SHARE and ctx.version >= SHARE_SINCE:
        if not is_allowed(ctx, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        if not _is_share_key(key):
            return ErrorCode.INVALID_REQUEST
    else:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def _is_share_key(key: str) -> bool:
    """``group:topic id:partition``; the group may hold colons itself."""
    parts = key.rsplit(":", 2)
    if len(parts) != 3:
        return False
    group, topic_id, partition = parts
    try:
        parse_id(topic_id)
    except ValueError:
        return False
    return bool(group) and partition.isascii() and partition.isdigit()
