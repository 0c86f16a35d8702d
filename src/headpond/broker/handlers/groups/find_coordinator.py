"""FindCoordinator: v0-v6.

Behaviour   The coordinator of a key is the leader of its partition of the internal topic (Java's hash of the key), at
            the address of the listener that was asked. The topic is made for the first who asks, who waits for it;
            where that fails, or nobody leads, COORDINATOR_NOT_AVAILABLE, which clients retry.
Versions    v1 key type · v3 flexible · v4 several keys (KIP-699) · v6 share groups (KIP-932)
Not done    share groups: COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from headpond.broker.coordinators.internal_topic import CoordinatorTopic
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode
from headpond.model.ids import parse_id
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
SEVERAL_KEYS_SINCE = 4
SHARE_SINCE = 6

_MESSAGES = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message was sent to "
        "an incompatible broker. See the broker logs for more details."
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
}

Coordinator = FindCoordinatorResponse.Coordinator


async def handle(ctx: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    kind = request.key_type
    if ctx.version < SEVERAL_KEYS_SINCE:
        found = await _look_up(ctx, kind, request.key)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=_MESSAGES[ErrorCode(found.error_code)],
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    return FindCoordinatorResponse(
        coordinators=[await _look_up(ctx, kind, key) async for key in ctx.in_slices(request.coordinator_keys)]
    )


async def _look_up(ctx: Context, kind: int, key: str) -> Coordinator:
    try:
        _check(ctx, kind, key)
        broker_id = await _leader(ctx, kind, key)
    except BrokerError as refused:
        # With several keys Kafka leaves the message empty, except for types that it does not know.
        message = "" if kind in (GROUP, TRANSACTION, SHARE) else _MESSAGES[refused.code]
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=refused.code, error_message=message)
    endpoint = ctx.broker.image.brokers[broker_id].listeners[ctx.listener.name]
    return Coordinator(key=key, node_id=broker_id, host=endpoint.host, port=endpoint.port)


async def _leader(ctx: Context, kind: int, key: str) -> int:
    topic = _topic(ctx, kind)
    broker_id = None if topic is None else await topic.leader_for(key)
    broker = None if broker_id is None else ctx.broker.image.brokers.get(broker_id)
    if broker is None or broker.fenced or ctx.listener.name not in broker.listeners:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return broker.id


def _topic(ctx: Context, kind: int) -> CoordinatorTopic | None:
    if kind == GROUP:
        return ctx.broker.groups.topic
    if kind == TRANSACTION:
        return ctx.broker.transactions.topic
    return None


def _check(ctx: Context, kind: int, key: str) -> None:
    """Raise what is wrong with the question itself."""
    if kind == GROUP:
        if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.GROUP, key):
            raise BrokerError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    elif kind == TRANSACTION:
        if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif kind == SHARE and ctx.version >= SHARE_SINCE:
        if not is_allowed(ctx, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if not _is_share_key(key):
            raise BrokerError(ErrorCode.INVALID_REQUEST)
    else:
        raise BrokerError(ErrorCode.INVALID_REQUEST)


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
