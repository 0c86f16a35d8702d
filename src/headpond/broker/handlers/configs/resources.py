"""What can have settings (topics, brokers, loggers, client metrics, groups), and how each is described and changed.

The handlers of DescribeConfigs, AlterConfigs and IncrementalAlterConfigs ask here; the rules are in ``config.dynamic``.
A change is one transaction in the metadata store: after a crash all of a resource's change is there or none of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from headpond.broker.handlers.configs import loggers
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK, A_ROW
from headpond.cluster.names import check_name
from headpond.config import dynamic
from headpond.config.definition import UNKNOWN, ConfigError
from headpond.config.dynamic import Operation, Row
from headpond.config.effective import Effective
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from headpond.protocol.schema.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from headpond.broker.services import Broker
    from headpond.cluster.metadata_writer import ConfigKind

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KINDS = {TOPIC: "topic", BROKER: "broker", CLIENT_METRICS: "client-metrics", GROUP: "group"}

DYNAMIC_LOGGER = 6
"""The source of a logger's level, as DescribeConfigs sends it."""

# Kafka's words for INVALID_REQUEST, which a resource type that it does not know gets when it is described.
_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)


class Resource(NamedTuple):
    type: int
    name: str


Wanted = TypeVar(
    "Wanted", AlterConfigsRequest.AlterConfigsResource, IncrementalAlterConfigsRequest.AlterConfigsResource
)
Answered = TypeVar(
    "Answered",
    AlterConfigsResponse.AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
)
Change = Callable[[Mapping[str, str]], dict[str, str]]
"""From a resource's settings to its new ones; raises ``BrokerError`` when they cannot be."""


def effective_now(broker: Broker) -> Effective:
    """This broker's settings with the dynamic ones as the image has them."""
    settings, image = broker.settings, broker.image
    return settings.effective.with_dynamic(image.broker_configs(None), image.broker_configs(settings.broker_id))


# --- describing -------------------------------------------------------------------------------------------------------


class Descriptions:
    """What one request is told of its resources. Settings that several have in common are described once: the list of
    their rows is the same object."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._effective = effective_now(broker)
        self._rows: dict[tuple[object, ...], tuple[object, list[Row]]] = {}

    def of(self, resource: Resource, names: frozenset[str]) -> list[Row]:
        """The settings of ``resource``: all when ``names`` is empty. Raises ``BrokerError``."""
        describe_one = _DESCRIBE.get(resource.type)
        if describe_one is None:
            raise BrokerError(ErrorCode.INVALID_REQUEST, _MALFORMED)
        try:
            return describe_one(self, resource.name, names)
        except ConfigError as error:  # the store holds a value that this broker does not take
            raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None

    def _once(self, kind: int, overrides: object, names: frozenset[str], rows: Callable[[], list[Row]]) -> list[Row]:
        key = kind, id(overrides), names
        if key not in self._rows:
            self._rows[key] = overrides, rows()  # with a reference to what its id stands for
        return self._rows[key][1]

    def _topic(self, name: str, names: frozenset[str]) -> list[Row]:
        check_name(name)
        if name not in self._broker.image.topics:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        overrides = self._broker.image.topic_configs(name)
        return self._once(TOPIC, overrides, names, lambda: dynamic.describe_topic(overrides, self._effective, names))

    def _broker_itself(self, name: str, names: frozenset[str]) -> list[Row]:
        if not name:
            return self._once(BROKER, None, names, lambda: dynamic.describe_broker_default(self._effective, names))
        mine = self._broker.settings.broker_id
        if _broker_id(name, "Broker id must be an integer, but it is: ") != mine:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {mine} or empty string, but received {name}"
            )
        effective = self._effective
        return self._once(BROKER, effective, names, lambda: dynamic.describe_broker(effective, names))

    def _loggers(self, name: str, names: frozenset[str]) -> list[Row]:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        mine = self._broker.settings.broker_id
        if _broker_id(name, "Broker id must be an integer, but it is: ") != mine:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {mine} but received {name}")
        return self._once(BROKER_LOGGER, None, names, lambda: _logger_rows(names))

    def _client_metrics(self, name: str, names: frozenset[str]) -> list[Row]:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        overrides = self._broker.image.configs(KINDS[CLIENT_METRICS], name)
        return self._once(CLIENT_METRICS, overrides, names, lambda: dynamic.describe_client_metrics(overrides, names))

    def _group(self, name: str, names: frozenset[str]) -> list[Row]:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        overrides = self._broker.image.configs(KINDS[GROUP], name)
        return self._once(GROUP, overrides, names, lambda: dynamic.describe_group(overrides, self._effective, names))


_DESCRIBE: dict[int, Callable[[Descriptions, str, frozenset[str]], list[Row]]] = {
    TOPIC: Descriptions._topic,
    BROKER: Descriptions._broker_itself,
    BROKER_LOGGER: Descriptions._loggers,
    CLIENT_METRICS: Descriptions._client_metrics,
    GROUP: Descriptions._group,
}


def _logger_rows(names: frozenset[str]) -> list[Row]:
    return [
        Row(logger, level, DYNAMIC_LOGGER, False, False, UNKNOWN, ())
        for logger, level in loggers.levels().items()
        if not names or logger in names
    ]


# --- changing ---------------------------------------------------------------------------------------------------------


A_CHANGE = 8 * A_ROW
"""What it costs to check the settings of a resource and to have them stored."""


async def change_each(
    ctx: Context,
    wanted: Sequence[Wanted],
    answer: Callable[..., Answered],
    change: Callable[[Resource, Wanted], Awaitable[None]],
) -> list[Answered]:
    """The answer for each resource of a request. One's failure is its own."""
    times = await ctx.counted(Resource(each.resource_type, each.resource_name) for each in wanted)
    results: list[Answered] = []
    async for each in ctx.in_slices(wanted, A_CHANGE):
        resource = Resource(each.resource_type, each.resource_name)
        result = answer(resource_type=resource.type, resource_name=resource.name, error_message=None)
        try:
            if times[resource] > 1:  # which of the changes would count?
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            await change(resource, each)
        except BrokerError as error:
            result.error_code, result.error_message = error.code, error.message or None
        results.append(result)
    return results


async def check_entries(ctx: Context, entries: Iterable[tuple[str, bool]]) -> None:
    """Names, and whether their value is null where it must not be."""
    seen: set[str] = set()
    null_names: list[str] = []
    async for name, is_null in ctx.in_slices(entries, A_LOOK):
        if name in seen:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        seen.add(name)
        if is_null:
            null_names.append(name)
    if null_names:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(null_names)}")


async def alter(broker: Broker, resource: Resource, change: Change, *, validate_only: bool) -> None:
    """Check, then store. ``change`` may be asked more than once, when somebody else changes the same resource."""
    if resource.type not in KINDS:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")
    _check_name(broker, resource)
    if resource.type == CLIENT_METRICS:
        await broker.clock.sleep(0)  # patterns take some milliseconds, and a request may have many

    def checked(before: Mapping[str, str]) -> dict[str, str]:
        after = change(before)
        _check(broker, resource, after)
        return after

    kind = KINDS[resource.type]
    checked(broker.image.configs(kind, resource.name))
    if resource.type == TOPIC and resource.name not in broker.image.topics:
        raise _no_such_topic(resource.name)
    if not validate_only:
        try:
            await broker.metadata_writer.alter_configs(cast("ConfigKind", kind), resource.name, checked)
        except BrokerError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # deleted while we waited
                raise _no_such_topic(resource.name) from None
            raise


def alter_loggers(broker: Broker, name: str, operations: Sequence[Operation], *, validate_only: bool) -> None:
    mine = broker.settings.broker_id
    if _broker_id(name, "Node id must be an integer, but it is: ") != mine:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {mine}, but received {name}")
    changes: list[tuple[str, str | None]] = []
    for logger, operation, level in operations:
        if operation == dynamic.SET and level is not None:
            loggers.check_logger(logger)
            loggers.check_level(logger, level)
            changes.append((logger, level))
        elif operation == dynamic.DELETE:
            loggers.check_logger(logger)
            if logger == loggers.ROOT:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
            changes.append((logger, None))
        else:
            word = {dynamic.APPEND: "APPEND", dynamic.SUBTRACT: "SUBTRACT"}.get(operation, f"Unknown ({operation})")
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, f"{word} operation is not allowed for the BROKER_LOGGER resource"
            )
    if not validate_only:
        loggers.change(changes)


def _check_name(broker: Broker, resource: Resource) -> None:
    name = resource.name
    if resource.type == TOPIC:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_name(name)
    elif resource.type == BROKER and name:
        mine = broker.settings.broker_id
        if _broker_id(name, "Node id must be an integer, but it is: ") != mine:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {mine}, but received {name}")
    elif resource.type == CLIENT_METRICS and not name:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    elif resource.type == GROUP and not name:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


def _check(broker: Broker, resource: Resource, configs: Mapping[str, str]) -> None:
    effective = effective_now(broker)
    if resource.type == TOPIC:
        dynamic.check_topic(configs, effective)
    elif resource.type == BROKER:
        dynamic.check_broker(configs, effective, of_all_brokers=not resource.name)
    elif resource.type == GROUP:
        dynamic.check_group(configs, effective)
    else:
        dynamic.check_client_metrics(configs)


def _no_such_topic(name: str) -> BrokerError:
    return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _broker_id(name: str, otherwise: str) -> int:
    digits = name[1:] if name[:1] in ("-", "+") else name
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        raise BrokerError(ErrorCode.INVALID_REQUEST, otherwise + name)
    return int(name)
