"""AlterConfigs: v0-v2.

Behaviour   Replaces all settings of a resource: what is not named goes back to its default. Loggers cannot be changed
            this way. One resource's failure is its own. A resource that is named twice is refused (to such a request
            Kafka 4.3 sends no answer at all).
Versions    v2 flexible.
"""

from __future__ import annotations

from headpond.broker.handlers.configs.resources import Resource, alter, change_each, check_entries
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.protocol.schema.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Wanted = AlterConfigsRequest.AlterConfigsResource
Result = AlterConfigsResponse.AlterConfigsResourceResponse


async def handle(ctx: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    async def replace(resource: Resource, wanted: Wanted) -> None:
        await check_entries(ctx, ((each.name, each.value is None) for each in wanted.configs))
        given = ctx.in_slices(wanted.configs, A_LOOK)
        configs = {each.name: each.value async for each in given if each.value is not None}
        await alter(ctx.broker, resource, lambda _: configs, validate_only=request.validate_only)

    return AlterConfigsResponse(responses=await change_each(ctx, request.resources, Result, replace))
