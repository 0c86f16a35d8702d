"""Whatever list of whatever request is long: a handler looks at a bounded part of it, then the loop turns.

Every API that is served is asked with every list of its request filled, one at a time. A new API is tested by itself;
one whose handler walks a list at a stretch fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from headpond.broker.coordinators.local_markers import LocalMarkers
from headpond.broker.handlers.groups import consumer_group_heartbeat
from headpond.broker.handlers.groups.consumer_group_heartbeat import NAMED_MAX
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import SLICE_COST
from headpond.broker.requests.routes import handle_of
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.apis import APIS, SERVED
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.facts import FieldFacts, struct_fields
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from support.wire import API_KEYS
from unit.broker.coordinator_cases import GROUP, ID, TOPIC, Coordinators, with_coordinators

ELEMENTS = 12_000
AT_A_STRETCH_MAX = SLICE_COST + 2_000
"""A slice of the cheapest looks, and the part of it that coordinators are given."""

BY_THEMSELVES = {
    "Produce": "test_produce_wire.py",
    "Fetch": "test_fetch_wire.py",
}
"""APIs whose bounds are asserted elsewhere."""

BOUNDED_OTHERWISE = {
    ("ConsumerGroupHeartbeat", "subscribed_topic_names"): "more than 20,000 are refused",
    ("ConsumerGroupHeartbeat", "topic_partitions"): "more than 20,000 are refused",
    ("ConsumerGroupHeartbeat", "topic_partitions", "partitions"): "more than 20,000 are refused",
    ("JoinGroup", "protocols"): "more than 1,000 are refused",
    ("DescribeClientQuotas", "components"): "the fourth is a repetition, which is refused",
}
"""Lists that a handler need not walk in slices, and why not."""

FIELDS: dict[str, dict[str, Any]] = {
    "AddPartitionsToTxn": {"transactional_id": ID, "producer_id": 0, "producer_epoch": 0},
    "AlterConfigs": {"resource_type": 2, "validate_only": True},
    "CreateAcls": {"resource_type": 2, "resource_pattern_type": 3, "operation": 3, "permission_type": 3},
    "CreatePartitions": {"timeout_ms": 1_000, "validate_only": True},
    "CreateTopics": {"timeout_ms": 1_000, "validate_only": True, "num_partitions": 1, "replication_factor": 1},
    "DeleteAcls": {"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 3, "permission_type": 3},
    "DeleteTopics": {"timeout_ms": 1_000, "topic_id": bytes(16)},
    "DescribeConfigs": {"resource_type": 2},
    "ElectLeaders": {"timeout_ms": 1_000},
    "IncrementalAlterConfigs": {"resource_type": 2, "validate_only": True},
    "JoinGroup": {"session_timeout_ms": 10_000},
    "Metadata": {"topic_id": bytes(16), "allow_auto_topic_creation": False},
    "SyncGroup": {"protocol_type": "consumer", "protocol_name": "range"},
    "UpdateFeatures": {"timeout_ms": 1_000, "upgrade_type": 1},
}
"""What makes the handler go on beyond its first check."""

NAMES = {"group_id": GROUP, "group_ids": GROUP, "groups": GROUP, "groups_names": GROUP, "transactional_id": ID,
         "transactional_ids": ID}  # fmt: skip


class Stretch:
    """How many elements were looked at since the loop turned last, and the most that it ever was."""

    def __init__(self) -> None:
        self.elements = self.most = 0

    def look(self, elements: int) -> None:
        self.elements += elements
        self.most = max(self.most, self.elements)

    async def turn_for_ever(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.elements = 0


class Watched(list[Any]):
    """A list that tells how much of it is looked at."""

    stretch: Stretch

    def __iter__(self) -> Iterator[Any]:
        for element in super().__iter__():
            self.stretch.look(1)
            yield element

    def __getitem__(self, which: Any) -> Any:
        found = super().__getitem__(which)
        self.stretch.look(len(found) if isinstance(which, slice) else 1)
        return found


class Long(NamedTuple):
    """A list of a request, by the fields that lead to it. ``is_distinct``: its elements are of things that the broker
    does not have, each of another; else all are of one that it has."""

    api: str
    path: tuple[str, ...]
    is_distinct: bool

    def __str__(self) -> str:
        return f"{self.api} {'.'.join(self.path)} {'distinct' if self.is_distinct else 'the same'}"


def lists_of(key: int) -> Iterator[tuple[str, ...]]:
    message, version = APIS[key].request, APIS[key].versions[-1]

    def under(struct: type[msgspec.Struct], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for field in struct_fields(struct, message):
            if version in field.versions:
                if field.is_list:
                    yield (*path, field.name)
                if field.struct is not None:
                    yield from under(field.struct, (*path, field.name))

    return under(message, ())


class Filled:
    def __init__(self, long: Long, stretch: Stretch) -> None:
        self.long = long
        self.stretch = stretch
        self.message = APIS[API_KEYS[long.api]].request
        self.version = APIS[API_KEYS[long.api]].versions[-1]

    def request(self) -> Any:
        return self._struct(self.message, (), 0)

    def _struct(self, kind: type[msgspec.Struct], path: tuple[str, ...], number: int) -> Any:
        fields = [each for each in struct_fields(kind, self.message) if self.version in each.versions]
        return kind(**{each.name: self._value(each, (*path, each.name), number) for each in fields})

    def _value(self, field: FieldFacts, path: tuple[str, ...], number: int) -> Any:
        if not field.is_list:
            return self._one(field, path, number)
        if path != self.long.path:
            leads_there = self.long.path[: len(path)] == path
            return [self._one(field, path, 0)] if leads_there else []
        watched = Watched(self._one(field, path, number) for number in range(ELEMENTS))
        watched.stretch = self.stretch
        return watched

    def _one(self, field: FieldFacts, path: tuple[str, ...], number: int) -> Any:
        given = FIELDS.get(self.long.api, {})
        if field.name in given:
            return given[field.name]
        is_of_the_list = self.long.is_distinct and path[: len(self.long.path)] == self.long.path
        if field.struct is not None:
            return self._struct(field.struct, path, number)
        if field.wire == "string":
            return f"n{number}" if is_of_the_list else NAMES.get(field.name, TOPIC)
        if field.wire == "uuid":
            return number.to_bytes(16, "big") if is_of_the_list else bytes(16)
        if field.wire == "bool":
            return bool(field.default)
        if field.wire in ("bytes", "records"):
            return b""
        return number % 100 + 1 if is_of_the_list else 0


def list_at(request: Any, path: tuple[str, ...]) -> Any:
    for name in path[:-1]:
        inner = getattr(request, name)
        request = list.__getitem__(inner, 0) if isinstance(inner, list) else inner
    return getattr(request, path[-1])


class NoLogs:
    data_dir = "data"

    def __iter__(self) -> Iterator[None]:
        return iter(())

    def partition(self, tp: object) -> None:
        return None

    def get(self, tp: object) -> None:
        return None

    async def space(self) -> tuple[int, int]:
        return 1, 1


LONG = [
    Long(APIS[key].name, path, is_distinct)
    for key in sorted(SERVED)
    if APIS[key].name not in BY_THEMSELVES
    for path in lists_of(key)
    for is_distinct in (True, False)
]


@pytest.mark.parametrize("long", LONG, ids=str)
def test_a_handler_looks_at_a_bounded_part_of_a_list_before_the_loop_turns(long: Long) -> None:
    stretch = Stretch()

    async def scenario(broker: Coordinators) -> None:
        replicas: Any = NoLogs()
        broker.broker.replicas = broker.broker.logs = replicas
        broker.broker.markers = LocalMarkers(
            replicas,
            broker.broker.clock,
            broker.cluster.tasks,
            broker.broker.pacing.slices,
            offsets_topic="",
            offsets=broker.broker.groups,
        )
        key = API_KEYS[long.api]
        request = Filled(long, stretch).request()
        stretch.elements = stretch.most = 0
        turning = asyncio.ensure_future(stretch.turn_for_ever())
        context = Context(broker.broker, broker.listener, APIS[key].versions[-1])
        try:
            await handle_of(key)(context, request)
        except (BrokerError, MalformedMessage):
            pass
        turning.cancel()
        assert len(list_at(request, long.path)) == ELEMENTS  # it goes away in slices, too

    with_coordinators(scenario)
    if (long.api, *long.path) not in BOUNDED_OTHERWISE:
        assert stretch.most <= AT_A_STRETCH_MAX


def test_what_is_bounded_elsewhere_is_served() -> None:
    assert {*BY_THEMSELVES, *(api for api, *_ in BOUNDED_OTHERWISE), *FIELDS} <= {APIS[key].name for key in SERVED}


@pytest.mark.parametrize("field", ["subscribed_topic_names", "topic_partitions", "partitions"])
def test_a_member_that_names_more_than_a_group_can_compare_at_a_stretch_is_refused(field: str) -> None:
    named = ConsumerGroupHeartbeatRequest.TopicPartitions
    too_many = NAMED_MAX + 1
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=0, rebalance_timeout_ms=1_000)
    if field == "subscribed_topic_names":
        request.subscribed_topic_names = [str(number) for number in range(too_many)]
    elif field == "topic_partitions":
        request.topic_partitions = [named() for _ in range(too_many)]
    else:
        request.topic_partitions = [named(partitions=list(range(too_many)))]
    answers: list[int] = []

    async def scenario(broker: Coordinators) -> None:
        context = Context(broker.broker, broker.listener, 1)
        answers.append((await consumer_group_heartbeat.handle(context, request)).error_code)

    with_coordinators(scenario)
    assert answers == [ErrorCode.INVALID_REQUEST]
