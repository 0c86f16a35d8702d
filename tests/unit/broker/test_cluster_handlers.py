"""ApiVersions, DescribeCluster, InitProducerId and FindCoordinator, as Apache Kafka 4.3.1 answers the same requests."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.broker.handlers.cluster import api_versions, describe_cluster
from headpond.broker.handlers.groups import find_coordinator
from headpond.broker.handlers.transactions import init_producer_id
from headpond.cluster.features import OF_A_NEW_CLUSTER
from headpond.protocol.apis import advertised_versions
from headpond.protocol.codec import encoder
from headpond.protocol.schema.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headpond.protocol.schema.describe_cluster import DescribeClusterRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from unit.broker.asking import LISTENER, Asker
from unit.broker.test_topic_handlers import with_asker
from unit.cluster.small_cluster import SmallCluster, simulate


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_what_is_served_and_what_is_finalized(version: int) -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start(features=OF_A_NEW_CLUSTER)
        software = {"client_software_name": "a.b-c", "client_software_version": "1.0"} if version >= 3 else {}
        response = await Asker(cluster).ask(api_versions, version, ApiVersionsRequest(**software))
        assert response.error_code == 0
        listed = [(api.api_key, api.min_version, api.max_version) for api in response.api_keys]
        assert listed == advertised_versions()
        assert (18, 0, 4) in listed
        if version >= 3:
            finalized = [(f.name, f.max_version_level, f.min_version_level) for f in response.finalized_features]
            assert finalized == [(name, level, level) for name, level in sorted(OF_A_NEW_CLUSTER.items())]
            supported = [(f.name, f.min_version, f.max_version) for f in response.supported_features]
            assert ("metadata.version", 7, 30) in supported
            assert (("group.version", 0, 1) in supported) == (version >= 4)  # v3 leaves out those from 0
            assert (("transaction.version", 0, 2) in supported) == (version >= 4)
            assert response.finalized_features_epoch == cluster.image.revision >= 0
            assert response.zk_migration_ready is False

    simulate(scenario)


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("x", ""), ("x y", "1"), ("x", "1 2"), ("-x", "1"), ("x-", "1"), ("x_y", "1"), ("é", "1")],
)
def test_a_client_that_names_itself_badly_is_refused(name: str, version: str) -> None:
    async def scenario(asker: Asker) -> None:
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        response = await asker.ask(api_versions, 3, request)
        assert (response.error_code, response.api_keys, response.finalized_features_epoch) == (42, [], -1)

    with_asker(scenario)


def test_an_unknown_version_is_answered_byte_for_byte_as_kafka_does() -> None:
    body = encoder(ApiVersionsResponse, 0)(api_versions.unsupported_version_response())
    assert body == b"\x00#\x00\x00\x00\x01\x00\x12\x00\x00\x00\x04"


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(version: int) -> None:
    async def scenario(asker: Asker) -> None:
        response = await asker.ask(describe_cluster, version, DescribeClusterRequest())
        assert (response.error_code, response.error_message, response.endpoint_type) == (0, None, 1)
        assert (response.cluster_id, response.controller_id) == (asker.cluster.image.cluster_id, 1)
        assert response.cluster_authorized_operations == -2_147_483_648
        (broker,) = response.brokers
        assert (broker.broker_id, broker.host, broker.port, broker.rack) == (1, "broker1.example", 9092, None)
        with_operations = DescribeClusterRequest(include_cluster_authorized_operations=True)
        assert (await asker.ask(describe_cluster, version, with_operations)).cluster_authorized_operations == 8096

    with_asker(scenario)


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (2, 114, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"),
        (0, 115, "Unsupported endpoint type 0"),
        (7, 115, "Unsupported endpoint type 7"),
    ],
)
def test_other_endpoints_than_brokers_are_not_described(endpoint_type: int, code: int, message: str) -> None:
    async def scenario(asker: Asker) -> None:
        response = await asker.ask(describe_cluster, 1, DescribeClusterRequest(endpoint_type=endpoint_type))
        assert (response.error_code, response.error_message) == (code, message)
        assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])

    with_asker(scenario)


async def init(asker: Asker, version: int = 4, **fields: Any) -> tuple[int, int, int]:
    fields.setdefault("transactional_id", None)
    fields.setdefault("transaction_timeout_ms", 1_000)
    response = await asker.ask(init_producer_id, version, InitProducerIdRequest(**fields))
    return response.error_code, response.producer_id, response.producer_epoch


def test_every_idempotent_producer_gets_a_new_id_at_epoch_zero() -> None:
    async def scenario(asker: Asker) -> None:
        assert [await init(asker, version) for version in range(6)] == [(0, number, 0) for number in range(6)]
        assert await init(asker, transaction_timeout_ms=-5) == (0, 6, 0)
        assert await init(asker, producer_id=5, producer_epoch=3) == (0, 7, 0)
        assert await init(asker, producer_id=999_999, producer_epoch=32_767) == (0, 8, 0)

    with_asker(scenario)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"producer_id": 5}, 42),
        ({"producer_epoch": 5}, 42),
        ({"transactional_id": "t", "producer_epoch": 5}, 42),
        ({"transactional_id": ""}, 42),
        ({"transactional_id": "t", "transaction_timeout_ms": 0}, 50),
        ({"transactional_id": "t", "transaction_timeout_ms": 900_001}, 50),
        ({"transactional_id": "t"}, 16),
    ],
)
def test_what_is_no_idempotent_producer_is_refused(fields: dict[str, Any], code: int) -> None:
    async def scenario(asker: Asker) -> None:
        assert await init(asker, **fields) == (code, -1, -1)

    with_asker(scenario)


def test_a_store_out_of_reach_is_an_error_that_producers_retry() -> None:
    async def scenario(asker: Asker) -> None:
        asker.cluster.store.is_reachable = False
        assert await init(asker) == (15, -1, -1)

    with_asker(scenario)


MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)


@pytest.mark.parametrize(
    ("version", "kind", "code", "message"),
    [
        (3, 2, 42, MALFORMED),
        (3, 3, 42, MALFORMED),
    ],
)
def test_one_key_may_have_no_coordinator(version: int, kind: int | None, code: int, message: str) -> None:
    async def scenario(asker: Asker) -> None:
        more = {} if kind is None else {"key_type": kind}
        response = await asker.ask(find_coordinator, version, FindCoordinatorRequest(key="g", **more))
        assert (response.error_code, response.error_message) == (code, message)
        assert (response.node_id, response.host, response.port) == (-1, "", -1)

    with_asker(scenario)


@pytest.mark.parametrize(
    ("version", "kind", "key", "code", "message"),
    [
        (4, 9, "g", 42, MALFORMED),
        (6, -1, "g", 42, MALFORMED),
        (5, 2, "g", 42, ""),
        (6, 2, "g", 42, ""),
        (6, 2, "g:AAAAAAAAAAAAAAAAAAAAAA:0", 15, ""),
    ],
)
def test_none_of_several_keys_has_one_either(version: int, kind: int, key: str, code: int, message: str) -> None:
    async def scenario(asker: Asker) -> None:
        request = FindCoordinatorRequest(coordinator_keys=[key, key + "x"], key_type=kind)
        response = await asker.ask(find_coordinator, version, request)
        assert [each.key for each in response.coordinators] == [key, key + "x"]
        first = response.coordinators[0]
        assert (first.error_code, first.error_message) == (code, message)
        assert (first.node_id, first.host, first.port) == (-1, "", -1)

    with_asker(scenario)


@pytest.mark.parametrize("version", range(7))
def test_the_first_who_asks_for_a_groups_coordinator_makes_its_topic_and_gets_an_answer(version: int) -> None:
    async def scenario(asker: Asker) -> None:
        if version < 4:
            found = await asker.ask(find_coordinator, version, FindCoordinatorRequest(key="g"))
            assert found.error_message == ("" if version == 0 else "NONE")
        else:
            answer = await asker.ask(find_coordinator, version, FindCoordinatorRequest(coordinator_keys=["h", "g"]))
            found = answer.coordinators[1]
            assert (found.key, found.error_message) == ("g", "")
        assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "broker1.example", 9092)
        topic = asker.cluster.image.topics["__consumer_offsets"]
        assert len(topic.partitions) == 50
        assert {state.replicas for state in topic.partitions} == {(1,)}  # there is one broker, whatever was wanted
        assert asker.cluster.image.topic_configs("__consumer_offsets") == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }

    with_asker(scenario)


@pytest.mark.parametrize("version", [1, 3, 6])
def test_likewise_the_first_who_asks_for_a_transactions_coordinator_makes_the_topic_of_transactions(
    version: int,
) -> None:
    async def scenario(asker: Asker) -> None:
        request = FindCoordinatorRequest(key="t", key_type=1)
        if version >= 4:
            request = FindCoordinatorRequest(coordinator_keys=["t"], key_type=1)
        answer = await asker.ask(find_coordinator, version, request)
        found = answer if version < 4 else answer.coordinators[0]
        assert (found.error_code, found.node_id) == (0, 1)
        assert len(asker.cluster.image.topics["__transaction_state"].partitions) == 50
        assert asker.cluster.image.topic_configs("__transaction_state") == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "2",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        }

    with_asker(scenario)


def test_nobody_coordinates_for_a_listener_that_the_leader_does_not_have() -> None:
    async def scenario(asker: Asker) -> None:
        asker.listener = LISTENER._replace(name="OTHER")
        response = await asker.ask(find_coordinator, 3, FindCoordinatorRequest(key="g"))
        assert (response.error_code, response.node_id) == (15, -1)

    with_asker(scenario)
