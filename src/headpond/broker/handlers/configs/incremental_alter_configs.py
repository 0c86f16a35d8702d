"""IncrementalAlterConfigs: v0-v1.

Behaviour   Changes single settings of a resource: set, delete (back to the default), append to and subtract from lists.
            A resource's change happens as a whole or not at all; one resource's failure is its own. Loggers change at
            once and only until the next start.
Versions    v1 flexible.
"""

from __future__ import annotations

from headpond.broker.handlers.configs.resources import (
    A_CHANGE,
    BROKER_LOGGER,
    KINDS,
    Resource,
    alter,
    alter_loggers,
    check_entries,
)
from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.config.dynamic import DELETE, Operation, apply_operations
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

API = Api(key=44, versions=range(2), name="IncrementalAlterConfigs")

Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


async def handle(ctx: Context, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    times = await ctx.counted(Resource(each.resource_type, each.resource_name) for each in request.resources)
    results = []
    async for wanted in ctx.in_slices(request.resources, A_CHANGE):
        resource = Resource(wanted.resource_type, wanted.resource_name)
        result = Result(resource_type=resource.type, resource_name=resource.name, error_message=None)
        try:
            if times[resource] > 1:  # which of the changes would count?
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            operations = [
                Operation(each.name, each.config_operation, each.value)
                async for each in ctx.in_slices(wanted.configs, A_LOOK)
            ]
            await _change(ctx, resource, operations, validate_only=request.validate_only)
        except BrokerError as error:
            result.error_code, result.error_message = error.code, error.message or None
        results.append(result)
    return IncrementalAlterConfigsResponse(responses=results)


async def _change(ctx: Context, resource: Resource, operations: list[Operation], *, validate_only: bool) -> None:
    await check_entries(ctx, ((each.name, each.value is None and each.operation != DELETE) for each in operations))
    if resource.type == BROKER_LOGGER:
        alter_loggers(ctx.broker, resource.name, operations, validate_only=validate_only)
        return
    kind = KINDS.get(resource.type, "")
    await alter(
        ctx.broker,
        resource,
        lambda before: apply_operations(kind, before, operations),
        validate_only=validate_only,
    )
