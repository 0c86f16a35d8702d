"""What only some admin clients offer: offsets by their kind, log folders, pages of partitions, the broker itself."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType
from kafka import KafkaAdminClient, TopicPartition
from kafka import OffsetSpec as KafkaPythonSpec

from support.batches import Rec, build, now_ms
from support.verbs import Topic, append, create_topic
from support.wire import Wire


@pytest.fixture
def timed(wire: Wire, topic: Topic) -> Topic:
    """Five records, the third with the latest timestamp."""
    append(wire, topic, build([Rec(timestamp_delta_ms=d) for d in (0, 10, 50, 20, 30)], timestamp_ms=now_ms() - 1_000))
    return topic


def test_confluent_lists_offsets_by_kind(timed: Topic, bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = {}
    for name, spec in (
        ("earliest", OffsetSpec.earliest()),
        ("latest", OffsetSpec.latest()),
        ("max", OffsetSpec.max_timestamp()),
        ("all", OffsetSpec.for_timestamp(0)),
    ):
        (future,) = admin.list_offsets({ConfluentPartition(timed.name, 0): spec}).values()
        found[name] = future.result(30).offset
    assert found == {"earliest": 0, "latest": 5, "max": 2, "all": 0}


def test_confluent_describes_topics_with_their_ids(wire: Wire, topic_name: str, bootstrap: str) -> None:
    from confluent_kafka import TopicCollection

    create_topic(wire, topic_name, partitions=3)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (future,) = admin.describe_topics(TopicCollection([topic_name])).values()
    found = future.result(30)
    assert (found.name, len(found.partitions), found.is_internal) == (topic_name, 3, False)
    assert {p.leader.id for p in found.partitions} == {found.partitions[0].isr[0].id}


def test_confluent_reads_the_broker_s_settings(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (broker,) = admin.list_topics(timeout=30).brokers
    (future,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(broker))]).values()
    found = future.result(30)
    assert found["log.segment.bytes"].value == "1073741824"
    assert found["message.max.bytes"].value == "1048588"


def test_kafka_python_lists_offsets_by_kind(timed: Topic, bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        asked = TopicPartition(timed.name, 0)
        found = [
            admin.list_partition_offsets({asked: spec})[asked].offset
            for spec in (KafkaPythonSpec.EARLIEST, KafkaPythonSpec.LATEST, KafkaPythonSpec.MAX_TIMESTAMP)
        ]
    finally:
        admin.close()
    assert found == [0, 5, 2]


def test_kafka_python_asks_for_everything_else(wire: Wire, topic_name: str, bootstrap: str) -> None:
    topic = create_topic(wire, topic_name, partitions=5)
    append(wire, topic, build([b"x"]), partition=4)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        page = admin.describe_topic_partitions([topic.name], response_partition_limit=3)
        assert len(page["topics"][0]["partitions"]) == 3 and page["next_cursor"]["partition_index"] == 3
        assert topic.name in admin.list_config_resources(["TOPIC"])["topic"]
        (folders,) = admin.describe_log_dirs([topic.name])
        assert "error_code" not in folders or folders["error_code"] == 0
        assert topic.name in str(folders)
        assert admin.api_versions()
        assert topic.name in admin.list_topics()
    finally:
        admin.close()
