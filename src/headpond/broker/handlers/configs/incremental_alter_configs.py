"""IncrementalAlterConfigs: v0-v1.

Behaviour   Changes single settings of a resource: set, delete (back to the default), append to and subtract from lists.
            A resource's change happens as a whole or not at all; one resource's failure is its own. Loggers change at
            once and only until the next start.
Versions    v1 flexible.
"""

from __future__ import annotations

from headpond.broker.handlers.configs.resources import (
    BROKER_LOGGER,
    KINDS,
    Resource,
    alter,
    alter_loggers,
    change_each,
    check_entries,
)
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.config.dynamic import DELETE, Operation, apply_operations
from headpond.protocol.schema.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Wanted = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


async def handle(ctx: Context, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    async def change(resource: Resource, wanted: Wanted) -> None:
        operations = [
            Operation(each.name, each.config_operation, each.value)
            async for each in ctx.in_slices(wanted.configs, A_LOOK)
        ]
        await _change(ctx, resource, operations, validate_only=request.validate_only)

    return IncrementalAlterConfigsResponse(responses=await change_each(ctx, request.resources, Result, change))


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
