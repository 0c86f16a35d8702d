"""What a start writes: the cluster's id once, a new registration and new leader epochs every time."""

from __future__ import annotations

import pytest

from headpond.cluster import keys
from headpond.cluster.features import OF_A_NEW_CLUSTER
from headpond.cluster.startup import found_cluster
from headpond.cluster.topics import NewTopic
from headpond.model import BrokerError, ErrorCode
from headpond.ports import Put
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from unit.cluster.small_cluster import SmallCluster, simulate


def epochs(cluster: SmallCluster) -> list[int]:
    return [state.leader_epoch for topic in cluster.image.topics.values() for state in topic.partitions]


def test_the_first_start_makes_the_cluster_and_the_next_one_finds_it() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = await SmallCluster(server, clock).start(features={"metadata.version": 30})
        assert len(first.image.cluster_id) == 22
        assert first.image.features == {"metadata.version": 30}
        again = await SmallCluster(server, clock).start(features={"metadata.version": 31})
        assert again.image.cluster_id == first.image.cluster_id
        assert again.image.features == {"metadata.version": 30}

    simulate(scenario)


def test_a_start_finalizes_what_an_earlier_version_did_not_know_and_leaves_levels_alone() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        await SmallCluster(server, clock).start(features={"metadata.version": 30})
        server.transact([], [Put(keys.feature("group.version"), b'{"level": 0}')])  # somebody turned it off
        newer = {"group.version": 1, "metadata.version": 31, "transaction.version": 2}
        again = await SmallCluster(server, clock).start(features=newer)
        assert again.image.features == {"group.version": 0, "metadata.version": 30, "transaction.version": 2}

    simulate(scenario)


def test_while_another_broker_is_registered_no_feature_is_finalized_for_it() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        await SmallCluster(server, clock, broker_id=2).start(features={"metadata.version": 30})
        newer = await SmallCluster(server, clock).start(features=OF_A_NEW_CLUSTER)
        assert newer.image.features == {"metadata.version": 30}

    simulate(scenario)


def test_a_data_folder_of_another_cluster_is_refused() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start()
        with pytest.raises(BrokerError) as caught:
            await found_cluster(cluster.metadata_writer, "AAAAAAAAAAAAAAAAAAAAAA", {})
        assert caught.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
        assert await found_cluster(cluster.metadata_writer, cluster.image.cluster_id, {}) == cluster.image.cluster_id

    simulate(scenario)


def test_every_start_is_another_incarnation_with_a_larger_broker_epoch() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = (await SmallCluster(server, clock).start()).image.brokers[1]
        again = SmallCluster(server, clock)
        again.random.random_bytes(1)  # another life draws other numbers
        second = (await again.start(rack="r1")).image.brokers[1]
        assert second.epoch > first.epoch
        assert second.incarnation != first.incarnation
        assert second.rack == "r1"
        assert second.listeners["PLAINTEXT"].host == "broker1.example"

    simulate(scenario)


@pytest.mark.parametrize("outcome", ["done", "not done"])
@pytest.mark.parametrize("nth", range(3))
def test_a_start_survives_a_lost_answer_at_any_of_its_writes(nth: int, outcome: str) -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = await SmallCluster(server, clock).start()
        await first.metadata_writer.create_topic(NewTopic("a", 3, 1))
        former = first.image.brokers[1]
        again = SmallCluster(server, clock)
        again.random.random_bytes(1)
        count = 0

        def at_nth() -> None:
            nonlocal count
            if count == nth:
                again.store.lose_next_answer(outcome)  # type: ignore[arg-type]
            else:
                again.store.before_transact = at_nth
            count += 1

        again.store.before_transact = at_nth
        await again.start()
        assert epochs(again) == [1, 1, 1]
        assert again.image.brokers[1].incarnation != former.incarnation
        assert again.image.brokers[1].epoch > former.epoch

    simulate(scenario)


def test_each_start_raises_every_leader_epoch_that_the_broker_holds_and_no_other() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = await SmallCluster(server, clock, broker_id=1).start()
        await first.metadata_writer.create_topic(NewTopic("mine", 300, 1))
        other = await SmallCluster(server, clock, broker_id=2).start()
        assert set(epochs(other)) == {0}
        again = await SmallCluster(server, clock, broker_id=1).start()
        assert epochs(again) == [1] * 300
        assert {state.partition_epoch for state in again.image.topics["mine"].partitions} == {1}
        once_more = await SmallCluster(server, clock, broker_id=1).start()
        assert epochs(once_more) == [2] * 300
        assert max(once_more.store.transactions) <= 128

    simulate(scenario)


def test_a_partition_that_somebody_else_changes_during_the_start_is_raised_all_the_same() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = await SmallCluster(server, clock).start()
        await first.metadata_writer.create_topic(NewTopic("a", 2, 1))
        (entry, _) = server.list("partitions/").entries

        def touch() -> None:
            server.transact([], [Put(entry.key, entry.value)])

        again = SmallCluster(server, clock)

        def third() -> None:
            again.store.before_transact = lambda: setattr(again.store, "before_transact", touch)

        again.store.before_transact = third
        await again.start()
        assert min(epochs(again)) == 1
        assert server.list("partitions/").entries[0].mod_revision > entry.mod_revision

    simulate(scenario)
