"""The numbers that stand for resources, patterns, operations and permissions in requests about ACLs.

Kafka takes a request with a number that it does not know for malformed and closes the connection: "unknown" must never
be mistaken for "any", least of all in a deletion.
"""

from __future__ import annotations

from headpond.protocol.errors import MalformedMessage

# Each starts at 1, "any"; 0 is "unknown".
_RESOURCE_TYPE_MAX = 7
_PATTERN_TYPE_MAX = 4
_OPERATION_MAX = 15
_PERMISSION_MAX = 3


def require_known(*, resource_type: int, pattern_type: int, operation: int, permission: int) -> None:
    if not (
        1 <= resource_type <= _RESOURCE_TYPE_MAX
        and 1 <= pattern_type <= _PATTERN_TYPE_MAX
        and 1 <= operation <= _OPERATION_MAX
        and 1 <= permission <= _PERMISSION_MAX
    ):
        raise MalformedMessage("an ACL with elements that are not known")
