"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources, with Kafka's own words."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.protocol.schema.alter_configs import AlterConfigsRequest
from headpond.protocol.schema.describe_configs import DescribeConfigsRequest
from headpond.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsRequest
from headpond.protocol.schema.list_config_resources import ListConfigResourcesRequest
from headpond.protocol.schema.metadata import MetadataRequest
from support.verbs import Topic
from support.waiting import eventually
from support.wire import Wire

TOPIC, BROKER = 2, 4
UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_CONFIG, INVALID_REQUEST = 3, 17, 40, 42
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
SOURCE_TOPIC, SOURCE_DYNAMIC_BROKER, SOURCE_STATIC, SOURCE_DEFAULT = 1, 2, 4, 5


def describe(wire: Wire, kind: int, name: str, keys: list[str] | None = None, *, version: int = 4, **f: Any) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    return wire.call(DescribeConfigsRequest(resources=[resource], **f), version).results[0]


def value_of(wire: Wire, topic: Topic, key: str) -> tuple[str | None, int]:
    (entry,) = describe(wire, TOPIC, topic.name, [key]).configs
    return entry.value, entry.config_source


def replace(
    wire: Wire, name: str, configs: dict[str, str | None], *, version: int = 2, kind: int = TOPIC, **f: Any
) -> Any:
    rows = [AlterConfigsRequest.AlterableConfig(name=k, value=v) for k, v in configs.items()]
    resource = AlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    return wire.call(AlterConfigsRequest(resources=[resource], **f), version).responses[0]


def change(
    wire: Wire, name: str, *ops: tuple[str, int, str | None], version: int = 1, kind: int = TOPIC, **f: Any
) -> Any:
    request = IncrementalAlterConfigsRequest
    rows = [request.AlterableConfig(name=k, config_operation=op, value=v) for k, op, v in ops]
    resource = request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    return wire.call(request(resources=[resource], **f), version).responses[0]


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_describes_a_topic_s_settings(wire: Wire, topic: Topic, version: int) -> None:
    answer = describe(wire, TOPIC, topic.name, version=version)
    assert (answer.error_code, answer.resource_type, answer.resource_name) == (0, TOPIC, topic.name)
    found = {c.name: c for c in answer.configs}
    kafka = {"cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes", "max.message.bytes", "flush.ms"}
    assert kafka <= set(found)
    retention = found["retention.ms"]
    assert (retention.value, retention.config_source) == ("604800000", SOURCE_DEFAULT)
    assert (retention.read_only, retention.is_sensitive) == (False, False)
    assert retention.config_type == (5 if version >= 3 else 0)


def test_only_the_keys_that_were_asked_for_are_described(wire: Wire, topic: Topic) -> None:
    answer = describe(wire, TOPIC, topic.name, ["retention.ms", "no.such.key"], include_documentation=True)
    (entry,) = answer.configs
    assert entry.name == "retention.ms" and entry.documentation


def test_the_broker_s_settings_say_where_they_come_from(wire: Wire) -> None:
    me = str(wire.call(MetadataRequest(topics=[]), 12).brokers[0].node_id)
    answer = describe(wire, BROKER, me, ["log.segment.bytes", "broker.id"], include_synonyms=True)
    found = {c.name: c for c in answer.configs}
    segment = found["log.segment.bytes"]
    assert (segment.value, segment.config_source, segment.read_only) == ("1073741824", SOURCE_DEFAULT, False)
    assert [(s.name, s.value) for s in segment.synonyms] == [("log.segment.bytes", "1073741824")]
    assert (found["broker.id"].value, found["broker.id"].read_only) == (me, True)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "no-such-topic", UNKNOWN_TOPIC),
        (TOPIC, "a b", INVALID_TOPIC),
        (TOPIC, "", INVALID_TOPIC),
        (BROKER, "99", INVALID_REQUEST),
        (BROKER, "x", INVALID_REQUEST),
        (3, "z", INVALID_REQUEST),
    ],
)
def test_a_resource_that_is_not_there_is_said_so(wire: Wire, kind: int, name: str, code: int) -> None:
    answer = describe(wire, kind, name)
    assert (answer.error_code, answer.configs) == (code, [])


@pytest.mark.parametrize("version", range(0, 3))
def test_every_version_of_alter_configs_replaces_all_settings(wire: Wire, topic: Topic, version: int) -> None:
    assert replace(wire, topic.name, {"retention.ms": "5", "segment.ms": "77"}, version=version).error_code == 0
    eventually(lambda: value_of(wire, topic, "segment.ms") == ("77", SOURCE_TOPIC))
    assert replace(wire, topic.name, {"retention.ms": "6"}, version=version).error_code == 0
    eventually(lambda: value_of(wire, topic, "retention.ms") == ("6", SOURCE_TOPIC))
    assert value_of(wire, topic, "segment.ms") == ("604800000", SOURCE_DEFAULT)


@pytest.mark.parametrize("version", range(0, 2))
def test_every_version_of_incremental_changes_only_what_it_names(wire: Wire, topic: Topic, version: int) -> None:
    change(wire, topic.name, ("retention.ms", SET, "5"), ("segment.ms", SET, "77"), version=version)
    eventually(lambda: value_of(wire, topic, "segment.ms")[0] == "77")
    assert change(wire, topic.name, ("segment.ms", DELETE, None), version=version).error_code == 0
    eventually(lambda: value_of(wire, topic, "segment.ms") == ("604800000", SOURCE_DEFAULT))
    assert value_of(wire, topic, "retention.ms") == ("5", SOURCE_TOPIC)


def test_a_list_setting_is_appended_to_and_subtracted_from(wire: Wire, topic: Topic) -> None:
    assert change(wire, topic.name, ("cleanup.policy", APPEND, "compact")).error_code == 0
    eventually(lambda: value_of(wire, topic, "cleanup.policy")[0] == "delete,compact")
    assert change(wire, topic.name, ("cleanup.policy", SUBTRACT, "delete")).error_code == 0
    eventually(lambda: value_of(wire, topic, "cleanup.policy")[0] == "compact")


@pytest.mark.parametrize(
    ("ops", "code", "message"),
    [
        ([("retention.ms", SET, "x")], INVALID_CONFIG, "Invalid value x for configuration retention.ms"),
        ([("retention.ms", SET, "-5")], INVALID_CONFIG, "retention.ms: Value must be at least -1"),
        ([("segment.bytes", SET, "1000")], INVALID_CONFIG, "segment.bytes: Value must be at least 1048576"),
        ([("min.insync.replicas", SET, "0")], INVALID_CONFIG, "min.insync.replicas: Value must be at least 1"),
        ([("compression.type", SET, "brotli")], INVALID_CONFIG, "String must be one of: uncompressed, zstd, lz4"),
        ([("retention.ms", APPEND, "1")], INVALID_CONFIG, "Can't APPEND to key retention.ms because its type is not"),
        ([("no.such.key", SET, "1")], INVALID_CONFIG, "Unknown topic config name: no.such.key"),
        ([("retention.ms", SET, None)], INVALID_REQUEST, "Null value not supported for : retention.ms"),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], INVALID_REQUEST, "duplicate config keys"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_change_that_can_t_be_is_refused_in_kafka_s_words(
    wire: Wire, topic: Topic, ops: list[tuple[str, int, str | None]], code: int, message: str
) -> None:
    before = describe(wire, TOPIC, topic.name).configs
    answer = change(wire, topic.name, ("flush.ms", SET, "5"), *ops)
    assert answer.error_code == code
    assert message in answer.error_message
    assert describe(wire, TOPIC, topic.name).configs == before, "nothing of the request was done"


def test_validate_only_changes_nothing(wire: Wire, topic: Topic) -> None:
    assert change(wire, topic.name, ("retention.ms", SET, "9"), validate_only=True).error_code == 0
    assert change(wire, topic.name, ("retention.ms", SET, "x"), validate_only=True).error_code == INVALID_CONFIG
    assert replace(wire, topic.name, {"retention.ms": "9"}, validate_only=True).error_code == 0
    assert value_of(wire, topic, "retention.ms") == ("604800000", SOURCE_DEFAULT)


def test_settings_of_what_does_not_exist_or_can_t_change_are_refused(wire: Wire, topic: Topic) -> None:
    me = str(wire.call(MetadataRequest(topics=[]), 12).brokers[0].node_id)
    assert replace(wire, "no-" + topic.name, {"retention.ms": "1"}).error_code == UNKNOWN_TOPIC
    assert change(wire, "no-" + topic.name, ("retention.ms", SET, "1")).error_code == UNKNOWN_TOPIC
    fixed = replace(wire, me, {"broker.id": "4"}, kind=BROKER)
    assert (fixed.error_code, fixed.error_message) == (
        INVALID_REQUEST,
        "Cannot update these configs dynamically: [broker.id]",
    )
    assert replace(wire, "99", {"log.retention.ms": "1"}, kind=BROKER).error_code == INVALID_REQUEST


def test_a_broker_s_setting_is_the_default_of_topics_that_have_none(wire: Wire, topic: Topic) -> None:
    me = str(wire.call(MetadataRequest(topics=[]), 12).brokers[0].node_id)
    key, topic_key = "log.cleaner.delete.retention.ms", "delete.retention.ms"
    try:
        assert change(wire, me, (key, SET, "86400001"), kind=BROKER).error_code == 0
        eventually(lambda: value_of(wire, topic, topic_key) == ("86400001", SOURCE_DYNAMIC_BROKER))
    finally:
        assert change(wire, me, (key, DELETE, None), kind=BROKER).error_code == 0
    eventually(lambda: value_of(wire, topic, topic_key) == ("86400000", SOURCE_DEFAULT))


def test_config_resources_are_listed(wire: Wire, topic: Topic) -> None:
    def listed(*kinds: int, version: int = 1) -> tuple[int, set[tuple[int, str]]]:
        response = wire.call(ListConfigResourcesRequest(resource_types=list(kinds)), version)
        return response.error_code, {(r.resource_type, r.resource_name) for r in response.config_resources}

    me = str(wire.call(MetadataRequest(topics=[]), 12).brokers[0].node_id)
    assert listed(version=0) == (0, set()), "version 0 lists client metrics only"
    code, everything = listed()
    assert code == 0 and {(TOPIC, topic.name), (BROKER, me)} <= everything
    assert listed(BROKER) == (0, {(BROKER, me)})
    assert {kind for kind, _ in listed(TOPIC)[1]} == {TOPIC}
    assert listed(99) == (35, set())
