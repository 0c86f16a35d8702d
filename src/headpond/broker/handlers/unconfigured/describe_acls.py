"""DescribeAcls: v1-v3.

Behaviour   SECURITY_DISABLED: there is no authorizer, as in a Kafka that none is configured for. A filter with unknown
            elements closes the connection.
Versions    v2 flexible · v3 users as resources.
Not done    ACLs.
"""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.broker.security.acl_codes import require_known
from headpond.model import ErrorCode
from headpond.protocol.schema.describe_acls import DescribeAclsRequest, DescribeAclsResponse

API = Api(key=29, versions=range(1, 4), name="DescribeAcls")


async def handle(ctx: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    require_known(
        resource_type=request.resource_type_filter,
        pattern_type=request.pattern_type_filter,
        operation=request.operation,
        permission=request.permission_type,
    )
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
    )
