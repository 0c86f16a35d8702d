"""AlterConfigs: v0-v2.

Behaviour   Replaces all settings of a resource: what is not named goes back to its default. Loggers cannot be changed
            this way. One resource's failure is its own. A resource that is named twice is refused (to such a request
            Kafka 4.3 sends no answer at all).
Versions    v2 flexible.
"""

from __future__ import annotations

from headpond.broker.handlers.configs.resources import A_CHANGE, Resource, alter, check_entries
from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.alter_configs import AlterConfigsRequest, AlterConfigsResponse

API = Api(key=33, versions=range(3), name="AlterConfigs")

Result = AlterConfigsResponse.AlterConfigsResourceResponse


async def handle(ctx: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    times = await ctx.counted(Resource(each.resource_type, each.resource_name) for each in request.resources)
    results = []
    async for wanted in ctx.in_slices(request.resources, A_CHANGE):
        resource = Resource(wanted.resource_type, wanted.resource_name)
        result = Result(resource_type=resource.type, resource_name=resource.name, error_message=None)
        try:
            if times[resource] > 1:  # which of the changes would count?
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            await _replace(ctx, resource, wanted, validate_only=request.validate_only)
        except BrokerError as error:
            result.error_code, result.error_message = error.code, error.message or None
        results.append(result)
    return AlterConfigsResponse(responses=results)


async def _replace(
    ctx: Context, resource: Resource, wanted: AlterConfigsRequest.AlterConfigsResource, *, validate_only: bool
) -> None:
    await check_entries(ctx, ((each.name, each.value is None) for each in wanted.configs))
    configs = {each.name: each.value async for each in ctx.in_slices(wanted.configs, A_LOOK) if each.value is not None}
    await alter(ctx.broker, resource, lambda _: configs, validate_only=validate_only)
