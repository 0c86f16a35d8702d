"""Topics and settings through the internal client: what it says is what other clients see, and the other way round."""

from __future__ import annotations

import pytest

from headpond.client import BrokerUnreachable, Client, ClientError
from headpond.client.admin import Admin, ConfigResource, NewTopic
from headpond.model import ErrorCode, TopicPartition
from support.clients.base import Sent
from support.clients.confluent import ConfluentAdmin, ConfluentClient
from support.internal_client import run_with_client


def test_a_topic_lives_from_its_creation_to_its_deletion(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> None:
        admin = Admin(client)
        await admin.create_topic(topic_name, 2, 1, {"retention.ms": "123000"})
        view = (await client.metadata([topic_name])).topics[topic_name]
        assert [one.index for one in view.partitions] == [0, 1]
        assert view.topic_id != bytes(16) and not view.is_internal
        with pytest.raises(ClientError) as caught:
            await admin.create_topic(topic_name, 2, 1)
        assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        await admin.create_partitions(topic_name, 3)
        assert ConfluentAdmin(bootstrap).topics()[topic_name] == 3
        outcomes = await admin.delete_topics([topic_name, topic_name + "-not"])
        assert outcomes[topic_name] is None
        missing = outcomes[topic_name + "-not"]
        assert missing is not None and missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        view = (await client.metadata([topic_name])).topics[topic_name]
        assert view.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run_with_client(bootstrap, scenario)


def test_several_topics_succeed_and_fail_each_for_itself(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> None:
        wanted = [NewTopic(topic_name, 1, 1), NewTopic("not/a/name", 1, 1), NewTopic(topic_name + "-x", 0, 1)]
        outcomes = await Admin(client).create_topics(wanted)
        codes = {name: error and error.code for name, error in outcomes.items()}
        assert codes == {
            topic_name: None,
            "not/a/name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            topic_name + "-x": ErrorCode.INVALID_PARTITIONS,
        }

    run_with_client(bootstrap, scenario)


def test_settings_are_read_and_changed_one_by_one(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> None:
        admin = Admin(client)
        await admin.create_topic(topic_name, 1, 1, {"retention.ms": "1000000"})
        resource = ConfigResource("topic", topic_name)
        await admin.alter_configs(resource, {"segment.ms": "60000"}, delete=["retention.ms"])
        entries = {one.name: one for one in await admin.describe_configs(resource, with_synonyms=True)}
        assert (entries["segment.ms"].value, entries["segment.ms"].source) == ("60000", "dynamic topic")
        assert entries["retention.ms"].is_default
        assert entries["retention.ms"].type == "long"
        await admin.alter_configs(resource, append={"cleanup.policy": "compact"})
        assert ConfluentAdmin(bootstrap).topic_config(topic_name)["cleanup.policy"] == "delete,compact"
        await admin.alter_configs(resource, subtract={"cleanup.policy": "delete"}, validate_only=True)
        (policy,) = await admin.describe_configs(resource, ["cleanup.policy"])
        assert policy.value == "delete,compact"
        with pytest.raises(ClientError, match=topic_name) as caught:
            await admin.alter_configs(resource, {"segment.mss": "1"})
        assert caught.value.code is ErrorCode.INVALID_CONFIG
        broker_id = str(min((await client.metadata([])).brokers))
        (node_id,) = await admin.describe_configs(ConfigResource("broker", broker_id), ["node.id"])
        assert (node_id.value, node_id.is_read_only) == (broker_id, True)

    run_with_client(bootstrap, scenario)


def test_the_log_folders_of_a_cluster_are_described(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> None:
        admin = Admin(client)
        await admin.create_topic(topic_name, 1, 1)
        ConfluentClient(bootstrap).produce(topic_name, [Sent(bytes(1_000))])
        view = await client.metadata([])
        folders = await admin.describe_log_dirs(topics={topic_name: [0]})
        assert list(folders) == list(view.brokers)
        (folder,) = [one for folders_of_one in folders.values() for one in folders_of_one if one.replicas]
        assert folder.error is ErrorCode.NONE and folder.usable_bytes > 0
        assert folder.replicas[TopicPartition(topic_name, 0)].size_bytes > 1_000

    run_with_client(bootstrap, scenario)


def test_nobody_there_is_said_at_once() -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(BrokerUnreachable, match=r"could not reach a broker at 127\.0\.0\.1:1: connection refused"):
            await client.metadata()

    run_with_client("127.0.0.1:1", scenario)
