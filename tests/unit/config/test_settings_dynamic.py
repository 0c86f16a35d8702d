"""Topic and dynamic settings: what a log gets, and what DescribeConfigs shows, as recorded from Kafka 4.3.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headpond.config import dynamic
from headpond.config.broker import settings_with_dynamic, topic_config
from headpond.config.definition import ConfigError
from headpond.config.dynamic import APPEND, DELETE, SET, SUBTRACT, Operation, Row, apply_operations
from headpond.config.effective import Effective
from headpond.config.known.used import OWN_DEFAULTS
from headpond.config.log import LogConfig
from headpond.model import BrokerError

RECORDED = json.loads((Path(__file__).parent / "kafka-4.3.1-described.json").read_text())
# As the recorded broker was set: Kafka's feature for eligible leader replicas had written the dynamic default.
KAFKAS_DYNAMIC_DEFAULT = {"min.insync.replicas": "1"}


def shown(rows: list[Row]) -> dict[str, list[Any]]:
    return {
        row.name: [
            row.name,
            row.value,
            row.source,
            row.read_only,
            row.is_sensitive,
            row.type,
            [list(s) for s in row.synonyms],
        ]
        for row in rows
    }


def recorded(kind: str) -> dict[str, list[Any]]:
    return {row[0]: row for row in RECORDED[kind]}


@pytest.mark.parametrize(
    ("kind", "overrides"),
    [
        ("topic", {}),
        ("topic-b", {"retention.ms": "5000", "cleanup.policy": "compact,delete", "segment.bytes": "1048576"}),
    ],
)
def test_a_topic_is_described_as_kafka_describes_it(kind: str, overrides: dict[str, str]) -> None:
    effective = Effective(dynamic_default=KAFKAS_DYNAMIC_DEFAULT)
    described = shown(dynamic.describe_topic(overrides, effective, None))
    ours = described.pop("headpond.validate.records")
    assert ours[1] == "false"
    assert described == recorded(kind)


def test_a_broker_is_described_as_kafka_describes_it() -> None:
    static = {
        "process.roles": "broker,controller", "node.id": "1", "controller.quorum.voters": "1@127.0.0.1:19093",
        "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:19092", "controller.listener.names": "CONTROLLER",
        "log.dirs": "/data/kafka", "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1", "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }  # fmt: skip
    described = shown(dynamic.describe_broker(Effective(static, dynamic_default=KAFKAS_DYNAMIC_DEFAULT), None))
    kafkas = recorded("broker")
    assert {name for name in described if not name.startswith("headpond.")} == kafkas.keys()
    different = {name for name, row in kafkas.items() if described[name] != row}
    assert different == set(OWN_DEFAULTS) | {"listener.security.protocol.map"}


def test_groups_and_client_metrics_are_described_as_kafka_describes_them() -> None:
    groups = shown(dynamic.describe_group({}, Effective(), None))
    assert groups == recorded("group")
    assert shown(dynamic.describe_client_metrics({}, None)) == recorded("client-metrics")
    [row] = dynamic.describe_group(
        {"consumer.session.timeout.ms": "46000"}, Effective(), ["consumer.session.timeout.ms"]
    )
    assert (row.value, row.source) == ("46000", 8)
    assert row.synonyms == (
        ("consumer.session.timeout.ms", "46000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    )
    [row] = dynamic.describe_client_metrics({"interval.ms": "1000"}, ["interval.ms"])
    assert (row.value, row.source, row.synonyms) == ("1000", 7, (("interval.ms", "1000", 7),))


def test_synonyms_come_in_the_order_of_strength() -> None:
    effective = Effective().with_dynamic(
        {"log.retention.ms": "604800002"},
        {"log.retention.ms": "604800001", "nope": "x", "log.cleanup.policy": "delete,compact"},
    )
    [row] = dynamic.describe_broker(effective, ["log.retention.ms"])
    assert (row.value, row.source) == ("604800001", 2)
    family = (
        ("log.retention.ms", "604800001", 2),
        ("log.retention.ms", "604800002", 3),
        ("log.retention.hours", "168", 5),
    )
    assert row.synonyms == family
    [row] = dynamic.describe_topic({}, effective, ["retention.ms"])
    assert (row.value, row.source, row.synonyms) == ("604800001", 2, family)
    [row] = dynamic.describe_broker(effective, ["nope"])
    assert row == ("nope", None, 2, True, True, 0, (("nope", None, 2),))
    assert [row.name for row in dynamic.describe_broker_default(effective, None)] == ["log.retention.ms"]


def test_the_internal_segment_size_is_shown_only_when_it_was_set() -> None:
    assert dynamic.describe_topic({}, Effective(), ["internal.segment.bytes"]) == []
    [row] = dynamic.describe_topic({"internal.segment.bytes": "2000"}, Effective(), ["internal.segment.bytes"])
    assert (row.value, row.source) == ("2000", 1)


def test_values_are_shown_in_their_plain_form() -> None:
    overrides = {"preallocate": " TRUE ", "flush.messages": "+05", "min.cleanable.dirty.ratio": "1e-5"}
    rows = dynamic.describe_topic(overrides, Effective(), list(overrides))
    assert {row.name: row.value for row in rows} == {
        "preallocate": "true", "flush.messages": "5", "min.cleanable.dirty.ratio": "1.0E-5"
    }  # fmt: skip


def test_the_defaults_of_a_log_are_those_of_the_registry() -> None:
    assert Effective().settings.log == LogConfig()


def test_a_topics_settings_lie_on_top_of_the_brokers() -> None:
    settings = Effective(
        {"log.retention.hours": "1", "log.segment.bytes": "2097152", "headpond.validate.records": "true"}
    ).settings
    config = topic_config(
        {
            "retention.bytes": "5",
            "message.timestamp.type": "LogAppendTime",
            "cleanup.policy": "compact",
            "from.the.future": "1",
        },
        settings,
    )
    assert (config.retention_ms, config.retention_bytes, config.segment_bytes) == (3_600_000, 5, 2_097_152)
    assert config.timestamp_is_append_time and config.validates_records
    assert (config.compacts, config.deletes) == (True, False)
    assert topic_config({}, settings) is settings.log


@pytest.mark.parametrize("text", ["-1", "-5"])
def test_a_negative_size_is_no_limit(text: str) -> None:
    settings = Effective({"log.retention.bytes": "7", "log.retention.ms": "9"}).settings
    assert topic_config({"retention.bytes": text}, settings).retention_bytes is None
    assert Effective({"log.retention.ms": text}).settings.log.retention_ms is None
    assert topic_config({"retention.ms": "-1"}, settings).retention_ms is None


def test_an_empty_cleanup_policy_keeps_everything() -> None:
    config = topic_config({"cleanup.policy": ""}, Effective().settings)
    assert (config.compacts, config.deletes) == (False, False)


def test_tests_get_small_segments_by_the_internal_name_only() -> None:
    settings = Effective().settings
    assert topic_config({"internal.segment.bytes": "1000", "segment.bytes": "1048576"}, settings).segment_bytes == 1000
    with pytest.raises(ConfigError, match="Value must be at least 1048576"):
        topic_config({"segment.bytes": "1000"}, settings)


def test_dynamic_settings_change_the_brokers_and_this_brokers_beat_those_of_all() -> None:
    effective = Effective({"message.max.bytes": "1000", "max.connections": "5"})
    settings = settings_with_dynamic(
        effective, {"message.max.bytes": "2000", "max.connections": "6"}, {"max.connections": "7"}
    )
    assert (settings.log.max_message_bytes, settings.network.connections_max) == (2000, 7)
    assert settings_with_dynamic(effective, {}, {}).log.max_message_bytes == 1000
    assert effective.settings.log.max_message_bytes == 1000


@pytest.mark.parametrize(
    ("threads", "why"), [("0", "should be at least 1"), ("5", "more than double the current value 2")]
)
def test_the_threads_of_compaction_change_step_by_step_and_never_to_none(threads: str, why: str) -> None:
    effective = Effective(dynamic_broker={"log.cleaner.threads": "2"})
    dynamic.check_broker({"log.cleaner.threads": "4"}, effective, of_all_brokers=False)
    dynamic.check_broker({}, effective, of_all_brokers=False)
    with pytest.raises(BrokerError, match=f"Log cleaner threads .*{why}"):
        dynamic.check_broker({"log.cleaner.threads": threads}, effective, of_all_brokers=False)


def test_a_stored_setting_that_cannot_change_while_running_is_left_out() -> None:
    settings = settings_with_dynamic(
        Effective(), {}, {"num.partitions": "9", "listeners": "PLAINTEXT://:1", "custom": "x"}
    )
    assert settings.topics.partitions == 1
    assert settings.network.listeners[0].port == 9092


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        (None, APPEND, "compact", "delete,compact"),  # to the default, as nothing was set
        ("delete,compact", APPEND, "compact,delete", "delete,compact"),
        ("delete,compact", SUBTRACT, "compact", "delete"),
        ("delete", SUBTRACT, "delete,foo", ""),
        ("", APPEND, "compact", "compact"),
        ("compact", SET, "delete", "delete"),
        ("compact", DELETE, None, None),
        (None, DELETE, None, None),
    ],
)
def test_lists_are_appended_to_and_subtracted_from(
    before: str | None, operation: int, value: str | None, after: str | None
) -> None:
    current = {} if before is None else {"cleanup.policy": before}
    changed = apply_operations("topic", current, [Operation("cleanup.policy", operation, value)])
    assert changed.get("cleanup.policy") == after
    assert current == ({} if before is None else {"cleanup.policy": before})
