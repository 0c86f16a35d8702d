"""APIs of features that are not there: who may not ask is told so. Their other answers are in ``tests/parity``."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.broker.handlers.cluster import elect_leaders, list_partition_reassignments
from headpond.broker.handlers.transactions import describe_producers
from headpond.broker.handlers.unconfigured import (
    create_acls,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_user_scram_credentials,
)
from headpond.model import ErrorCode
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.create_acls import CreateAclsRequest
from headpond.protocol.schema.delete_acls import DeleteAclsRequest
from headpond.protocol.schema.describe_acls import DescribeAclsRequest
from headpond.protocol.schema.describe_client_quotas import DescribeClientQuotasRequest
from headpond.protocol.schema.describe_producers import DescribeProducersRequest
from headpond.protocol.schema.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from headpond.protocol.schema.elect_leaders import ElectLeadersRequest
from headpond.protocol.schema.list_partition_reassignments import ListPartitionReassignmentsRequest
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from unit.broker.asking import Asker
from unit.broker.test_topic_handlers import Only, with_asker
from unit.cluster.small_cluster import SmallCluster, simulate


@pytest.mark.parametrize(
    ("handler", "version", "request_of"),
    [
        (describe_client_quotas, 1, DescribeClientQuotasRequest()),
        (describe_user_scram_credentials, 0, DescribeUserScramCredentialsRequest(users=None)),
        (list_partition_reassignments, 0, ListPartitionReassignmentsRequest(topics=None)),
        (elect_leaders, 2, ElectLeadersRequest(topic_partitions=None)),
    ],
)
def test_who_may_not_describe_or_change_the_cluster_is_told_so(handler: Any, version: int, request_of: Any) -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start()
        response = await Asker(cluster, authorizer=Only()).ask(handler, version, request_of)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    simulate(scenario)


def test_who_may_not_read_a_topic_does_not_learn_who_writes_it() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start()
        asked = DescribeProducersRequest.TopicRequest(name="secret", partition_indexes=[0])
        response = await Asker(cluster, authorizer=Only()).ask(
            describe_producers, 0, DescribeProducersRequest(topics=[asked])
        )
        (row,) = response.topics[0].partitions
        assert (row.error_code, row.active_producers) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])

    simulate(scenario)


KNOWN = {"operation": 1, "permission_type": 1}


@pytest.mark.parametrize("unknown", ["resource_type", "operation", "permission_type"])
def test_an_acl_with_an_unknown_element_is_no_request(unknown: str) -> None:
    """Least of all is "unknown" to be taken for "any", in a deletion."""

    async def scenario(asker: Asker) -> None:
        wrong = {"resource_type": 1, **KNOWN, unknown: 99}
        as_filter = {("resource_type_filter" if name == "resource_type" else name): v for name, v in wrong.items()}
        for handler, request in [
            (describe_acls, DescribeAclsRequest(**as_filter)),
            (create_acls, CreateAclsRequest(creations=[CreateAclsRequest.AclCreation(**wrong)])),
            (delete_acls, DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**as_filter)])),
        ]:
            with pytest.raises(MalformedMessage):
                await asker.ask(handler, 3, request)

    with_asker(scenario)
