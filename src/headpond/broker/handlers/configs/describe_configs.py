"""DescribeConfigs: v1-v4.

Behaviour   Topics, this broker (its id), all brokers' dynamic defaults (""), loggers, client metrics, groups. A list of
            keys that is null or empty asks for all; keys that do not exist are left out. Secrets have a null value, and
            so have unknown settings. One resource's failure is its own.
Versions    v1 source and synonyms · v3 type and documentation · v4 flexible.
"""

from __future__ import annotations

from headpond.broker.handlers.configs.resources import BROKER_LOGGER, KINDS, Descriptions, Resource
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK, A_ROW
from headpond.config.dynamic import Row
from headpond.model import BrokerError
from headpond.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


async def handle(ctx: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    descriptions = Descriptions(ctx.broker)
    entries: dict[int, list[Entry]] = {}
    return DescribeConfigsResponse(
        results=[
            await _result(ctx, request, wanted, descriptions, entries)
            async for wanted in ctx.in_slices(request.resources)
        ]
    )


async def _result(
    ctx: Context,
    request: DescribeConfigsRequest,
    wanted: DescribeConfigsRequest.DescribeConfigsResource,
    descriptions: Descriptions,
    entries: dict[int, list[Entry]],
) -> Result:
    result = Result(resource_type=wanted.resource_type, resource_name=wanted.resource_name)
    names = frozenset([name async for name in ctx.in_slices(wanted.configuration_keys or (), A_LOOK)])
    try:
        rows = descriptions.of(Resource(wanted.resource_type, wanted.resource_name), names)
    except BrokerError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    if id(rows) not in entries:  # the same settings are described once, however many resources have them
        await ctx.spend(A_ROW * len(rows))
        entries[id(rows)] = [_entry(request, wanted.resource_type, row) for row in rows]
    result.configs = entries[id(rows)]
    return result


def _entry(request: DescribeConfigsRequest, resource_type: int, row: Row) -> Entry:
    return Entry(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=[Synonym(name=name, value=value, source=source) for name, value, source in row.synonyms]
        if request.include_synonyms
        else [],
        config_type=row.type,
        documentation=_documentation(request, resource_type, row.name),
    )


def _documentation(request: DescribeConfigsRequest, resource_type: int, name: str) -> str | None:
    if resource_type == BROKER_LOGGER:
        return ""  # as Kafka answers, whether it was asked for or not
    if not request.include_documentation:
        return None
    from headpond.config.documentation import documentation

    return documentation(KINDS[resource_type], name)
