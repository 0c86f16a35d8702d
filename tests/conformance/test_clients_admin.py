"""Topics, partitions, settings and the cluster, through the admin clients that people script with."""

from __future__ import annotations

import pytest

from support.batches import build
from support.clients.base import Admin, Client, Refused, Sent
from support.clients.choose import make_client
from support.verbs import Topic, append, describe_topic, end_offset
from support.waiting import eventually
from support.wire import Wire

OUT_OF_RANGE, UNKNOWN_TOPIC, INVALID_TOPIC, ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG = 1, 3, 17, 36, 37, 40


def code_of(act: object, *arguments: object, **named: object) -> int:
    with pytest.raises(Refused) as refused:
        act(*arguments, **named)  # type: ignore[operator]
    return refused.value.code


def test_a_topic_is_created_seen_and_deleted(admin: Admin, topic_name: str) -> None:
    admin.create_topic(topic_name, partitions=3)
    eventually(lambda: admin.topics().get(topic_name) == 3)
    admin.delete_topic(topic_name)
    eventually(lambda: topic_name not in admin.topics())


def test_a_topic_that_exists_is_not_created_twice(admin: Admin, topic: Topic) -> None:
    assert code_of(admin.create_topic, topic.name) == ALREADY_EXISTS


def test_a_topic_that_does_not_exist_is_not_deleted(admin: Admin, topic_name: str) -> None:
    assert code_of(admin.delete_topic, topic_name) == UNKNOWN_TOPIC


@pytest.mark.parametrize("name", ["bad name", "a/b", "x" * 250, ".."])
def test_a_bad_topic_name_is_refused(admin: Admin, name: str) -> None:
    assert code_of(admin.create_topic, name) == INVALID_TOPIC


def test_a_recreated_topic_is_empty_and_has_a_new_id(admin: Admin, wire: Wire, topic: Topic) -> None:
    append(wire, topic, build([b"old"] * 3))
    admin.delete_topic(topic.name)
    eventually(lambda: topic.name not in admin.topics())
    # Apache Kafka deletes in the background: the name may be taken for a moment longer.
    eventually(lambda: admin.create_topic(topic.name) is None, retry_on=(Refused,))
    again = eventually(lambda: describe_topic(wire, topic.name), retry_on=(AssertionError,))
    assert again.id != topic.id
    eventually(lambda: end_offset(wire, again) == 0)


def test_partitions_are_added_and_never_taken_away(admin: Admin, wire: Wire, topic: Topic, bootstrap: str) -> None:
    append(wire, topic, build([b"kept"]))
    admin.add_partitions(topic.name, 4)
    eventually(lambda: admin.topics()[topic.name] == 4)
    client = make_client("confluent", bootstrap)
    assert client.produce(topic.name, [Sent(b"new")], partition=3) == [0]
    assert client.consume(topic.name, 1)[0].value == b"kept"
    for total in (4, 2):
        assert code_of(admin.add_partitions, topic.name, total) == INVALID_PARTITIONS


def test_topic_settings_are_given_read_and_changed(admin: Admin, topic_name: str) -> None:
    admin.create_topic(topic_name, configs={"retention.ms": "123456789"})
    config = eventually(lambda: admin.topic_config(topic_name), retry_on=(Refused,))
    assert (config["retention.ms"], config["cleanup.policy"]) == ("123456789", "delete")
    admin.set_topic_config(topic_name, "max.message.bytes", "2000000")
    eventually(lambda: admin.topic_config(topic_name)["max.message.bytes"] == "2000000")


@pytest.mark.parametrize(
    ("key", "value"),
    [("retention.mz", "1"), ("retention.ms", "soon"), ("cleanup.policy", "shred"), ("segment.bytes", "1000")],
)
def test_a_wrong_setting_is_refused_and_changes_nothing(admin: Admin, topic: Topic, key: str, value: str) -> None:
    before = admin.topic_config(topic.name)
    assert code_of(admin.set_topic_config, topic.name, key, value) == INVALID_CONFIG
    assert admin.topic_config(topic.name) == before
    assert code_of(admin.create_topic, topic.name + "-2", configs={key: value}) == INVALID_CONFIG


def test_a_setting_takes_effect_at_once(admin: Admin, topic: Topic, bootstrap: str) -> None:
    client = make_client("confluent", bootstrap)
    assert client.produce(topic.name, [Sent(b"x" * 2_000)]) == [0]
    admin.set_topic_config(topic.name, "max.message.bytes", "1000")

    def is_refused() -> bool:
        try:
            client.produce(topic.name, [Sent(b"x" * 2_000)])
        except Refused as refused:
            return refused.code == 10
        return False

    eventually(is_refused)


def test_records_are_deleted_up_to_an_offset(admin: Admin, wire: Wire, topic: Topic, bootstrap: str) -> None:
    append(wire, topic, build([str(n).encode() for n in range(10)]))
    client: Client = make_client("kafka-python", bootstrap)
    admin.delete_records(topic.name, 0, 3)
    assert client.bounds(topic.name) == (3, 10)
    assert client.consume(topic.name, 1)[0].value == b"3"
    admin.delete_records(topic.name, 0, -1)  # everything that there is
    assert client.bounds(topic.name) == (10, 10)
    if admin.name != "aiokafka":  # which drops the error
        assert code_of(admin.delete_records, topic.name, 0, 11) == OUT_OF_RANGE


def test_the_cluster_names_the_broker_that_answers(admin: Admin, bootstrap: str) -> None:
    ((_, host, port),) = admin.brokers()
    assert f"{host}:{port}" == bootstrap


def test_producing_to_a_new_name_creates_the_topic(client: Client, wire: Wire, topic_name: str) -> None:
    assert client.produce(topic_name, [Sent(b"first")]) == [0]
    assert describe_topic(wire, topic_name).name == topic_name


def test_a_hundred_topics_are_created_listed_and_deleted_in_one_go(wire: Wire, topic_name: str, bootstrap: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    names = [f"{topic_name}-{n}" for n in range(100)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        future.result(30)
    eventually(lambda: set(names) <= set(admin.list_topics(timeout=30).topics))
    for future in admin.delete_topics(names).values():
        future.result(30)
    eventually(lambda: not set(names) & set(admin.list_topics(timeout=30).topics))
