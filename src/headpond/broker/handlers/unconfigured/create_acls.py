"""CreateAcls: v1-v3.

Behaviour   SECURITY_DISABLED for each: there is no authorizer, as in a Kafka that none is configured for. An ACL with
            unknown elements closes the connection.
Versions    v2 flexible · v3 users as resources.
Not done    ACLs.
"""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.broker.security.acl_codes import NO_AUTHORIZER, require_known
from headpond.model import ErrorCode
from headpond.protocol.schema.create_acls import CreateAclsRequest, CreateAclsResponse

API = Api(key=30, versions=range(1, 4), name="CreateAcls")

Result = CreateAclsResponse.AclCreationResult


async def handle(ctx: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    refused = []
    async for acl in ctx.in_slices(request.creations):
        require_known(
            resource_type=acl.resource_type,
            pattern_type=acl.resource_pattern_type,
            operation=acl.operation,
            permission=acl.permission_type,
        )
        refused.append(Result(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER))
    return CreateAclsResponse(results=refused)
