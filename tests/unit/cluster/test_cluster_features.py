"""Features that are turned on and off while the cluster runs."""

from __future__ import annotations

import pytest

from headpond.broker.handlers.cluster import update_features
from headpond.broker.security.authorizer import Operation, ResourceType
from headpond.cluster import keys
from headpond.cluster.features import OF_A_NEW_CLUSTER, ChangeKind, FeatureChange
from headpond.model import BrokerError, ErrorCode
from headpond.ports import Put
from headpond.protocol.schema.update_features import UpdateFeaturesRequest
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from unit.broker.asking import Asker
from unit.broker.test_transaction_handlers import Rules
from unit.cluster.small_cluster import SmallCluster, simulate

OFF = FeatureChange("transaction.version", 0, ChangeKind.SAFE_DOWNGRADE)


def test_a_feature_that_was_turned_off_stays_off_over_a_start() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start(features=OF_A_NEW_CLUSTER)
        await cluster.metadata_writer.update_features([OFF])
        assert cluster.image.features["transaction.version"] == 0
        again = await SmallCluster(server, clock).start(features=OF_A_NEW_CLUSTER)
        assert again.image.features == {**OF_A_NEW_CLUSTER, "transaction.version": 0}

    simulate(scenario)


def test_all_changes_are_made_or_none() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start(features=OF_A_NEW_CLUSTER)
        with pytest.raises(BrokerError) as raised:
            await cluster.metadata_writer.update_features([OFF, FeatureChange("group.version", 9, ChangeKind.UPGRADE)])
        assert raised.value.code is ErrorCode.INVALID_UPDATE_VERSION
        assert cluster.image.features == OF_A_NEW_CLUSTER

    simulate(scenario)


def test_trying_changes_nothing() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start(features=OF_A_NEW_CLUSTER)
        await cluster.metadata_writer.update_features([OFF], validate_only=True)
        assert cluster.image.features == OF_A_NEW_CLUSTER

    simulate(scenario)


def test_what_somebody_else_changed_meanwhile_is_looked_at_again() -> None:
    """The plan was made for level 1; the store has 2 by then."""

    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        levels = {**OF_A_NEW_CLUSTER, "transaction.version": 1}
        cluster = await SmallCluster(server, clock).start(features=levels)
        server.transact([], [Put(keys.feature("transaction.version"), b'{"level": 2}')])  # the image does not know yet
        assert cluster.image.features["transaction.version"] == 1
        await cluster.metadata_writer.update_features([OFF])
        assert cluster.image.features["transaction.version"] == 0

    simulate(scenario)


def test_who_may_not_alter_the_cluster_changes_no_feature() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start(features=OF_A_NEW_CLUSTER)
        rules = Rules((Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster"))
        change = UpdateFeaturesRequest.FeatureUpdateKey("transaction.version", 0, upgrade_type=2)
        request = UpdateFeaturesRequest(feature_updates=[change])
        answer = await Asker(cluster, authorizer=rules).ask(update_features, 2, request)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert cluster.image.features == OF_A_NEW_CLUSTER

    simulate(scenario)
