"""ListConfigResources: v0-v1.

Behaviour   What has or can have settings: every topic and broker, the groups and client metrics that were given some.
            No types means all; a type that does not exist answers UNSUPPORTED_VERSION.
Versions    v0 client metrics only (it was ListClientMetricsResources) · v1 resource types (KIP-1142).
"""

from __future__ import annotations

from headpond.broker.handlers.configs.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, KINDS, TOPIC
from headpond.broker.requests.context import Context
from headpond.cluster.image import MetadataImage
from headpond.model import ErrorCode
from headpond.protocol.schema.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

LISTED = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


async def handle(ctx: Context, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    asked = request.resource_types if ctx.version >= 1 else [CLIENT_METRICS]
    types = set(await ctx.counted(asked))
    if not types.issubset(LISTED):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=listed)
            for listed in LISTED
            if not types or listed in types
            async for name in ctx.in_slices(_names(ctx.broker.image, listed))
        ]
    )


def _names(image: MetadataImage, resource_type: int) -> list[str]:
    if resource_type == TOPIC:
        return sorted(image.topics)
    if resource_type in (BROKER, BROKER_LOGGER):
        return [str(broker_id) for broker_id in sorted(image.brokers)]
    return image.configured(KINDS[resource_type])
