"""DeleteAcls: v1-v3.

Behaviour   SECURITY_DISABLED for each filter: there is no authorizer, as in a Kafka that none is configured for. A
            filter with unknown elements closes the connection.
Versions    v2 flexible · v3 users as resources.
Not done    ACLs.
"""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.broker.security.acl_codes import NO_AUTHORIZER, require_known
from headpond.model import ErrorCode
from headpond.protocol.schema.delete_acls import DeleteAclsRequest, DeleteAclsResponse

API = Api(key=31, versions=range(1, 4), name="DeleteAcls")

Result = DeleteAclsResponse.DeleteAclsFilterResult


async def handle(ctx: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    refused = []
    async for wanted in ctx.in_slices(request.filters):
        require_known(
            resource_type=wanted.resource_type_filter,
            pattern_type=wanted.pattern_type_filter,
            operation=wanted.operation,
            permission=wanted.permission_type,
        )
        refused.append(Result(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER))
    return DeleteAclsResponse(filter_results=refused)
