"""The question that every handler asks before it acts, in Kafka's terms, and the answer of a broker without ACLs."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headpond.broker.requests.context import Context, Principal

CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""

NOT_ASKED = -2_147_483_648
"""What a field of authorized operations holds when the request did not ask for it."""


class ResourceType(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


_O = Operation
OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        _O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        _O.CREATE, _O.ALTER, _O.DESCRIBE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _O.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (_O.WRITE, _O.DESCRIBE, _O.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (_O.DESCRIBE,),
    ResourceType.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS),
}  # fmt: skip
"""What can be asked of each kind of resource; the bits that an "authorized operations" field can have."""


class Authorizer(Protocol):
    @property
    def generation(self) -> int:
        """Grows whenever what is allowed may have changed: who goes by an earlier answer compares it."""

    def allows(self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str) -> bool: ...

    def allows_somewhere(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether there is any resource of that kind on which the operation is allowed."""


class AllowAll:
    generation = 0

    def allows(self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        return True

    def allows_somewhere(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        return True


def is_allowed(ctx: Context, operation: Operation, kind: ResourceType, name: str = CLUSTER_NAME) -> bool:
    return ctx.broker.authorizer.allows(ctx.principal, ctx.peer_host, operation, kind, name)


def authorized_operations(ctx: Context, kind: ResourceType, name: str = CLUSTER_NAME) -> int:
    """The operations that the asker may do on the resource, as a bit field."""
    return sum(1 << operation for operation in OPERATIONS[kind] if is_allowed(ctx, operation, kind, name))


def cluster_operations(ctx: Context, *, asked: bool) -> int:
    """The field of Metadata and DescribeCluster: nothing is said to whom the cluster may not be described."""
    if not asked:
        return NOT_ASKED
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return authorized_operations(ctx, ResourceType.CLUSTER)
