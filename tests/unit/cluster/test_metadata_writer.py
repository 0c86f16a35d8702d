"""The metadata writer: what a change writes, and what becomes of it when others, or the store, get in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headpond.cluster import keys
from headpond.cluster.image import MetadataImage
from headpond.cluster.rows import PartitionState
from headpond.cluster.topics import MorePartitions, NewTopic
from headpond.cluster.writes import loose_transaction, partition_puts, topic_put
from headpond.model import BrokerError, ErrorCode, OutcomeUnknown
from headpond.model.ids import id_text
from headpond.ports import STORE_OPERATIONS_MAX
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from unit.cluster.small_cluster import SmallCluster, simulate, with_cluster


async def refused(awaitable: object, code: ErrorCode) -> BrokerError:
    with pytest.raises(BrokerError) as caught:
        await awaitable  # type: ignore[misc]
    assert caught.value.code is code
    return caught.value


def partition_keys(server: StoreServer) -> list[str]:
    return [entry.key for entry in server.list("partitions/").entries]


def test_a_created_topic_is_in_the_image_when_the_call_returns() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        planned = await cluster.metadata_writer.create_topic(NewTopic("a", 3, 1, configs=(("retention.ms", "5"),)))
        topic = cluster.image.topics["a"]
        assert topic.topic_id == planned.topic_id
        assert [state.leader for state in topic.partitions] == [1, 1, 1]
        assert cluster.image.topic_names[topic.topic_id] == "a"
        assert cluster.image.topic_configs("a") == {"retention.ms": "5"}

    with_cluster(scenario)


def test_of_two_identical_creations_at_once_one_wins_and_the_other_finds_the_topic_existing() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        outcomes = await asyncio.gather(
            *(cluster.metadata_writer.create_topic(NewTopic("a", 1, 1)) for _ in range(2)), return_exceptions=True
        )
        errors = [outcome for outcome in outcomes if isinstance(outcome, BrokerError)]
        assert [error.code for error in errors] == [ErrorCode.TOPIC_ALREADY_EXISTS]
        assert len(partition_keys(cluster.server)) == 1

    with_cluster(scenario)


def test_two_brokers_that_create_names_with_the_same_metric_name_at_once_leave_only_one_of_them() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = await SmallCluster(server, clock, broker_id=1).start()
        second = await SmallCluster(server, clock, broker_id=2).start()
        outcomes = await asyncio.gather(
            first.metadata_writer.create_topic(NewTopic("a.b", 1, 1)),
            second.metadata_writer.create_topic(NewTopic("a_b", 1, 1)),
            return_exceptions=True,
        )
        errors = [outcome for outcome in outcomes if isinstance(outcome, BrokerError)]
        assert [error.code for error in errors] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
        assert len(server.list("topics/").entries) == 1

    simulate(scenario)


def test_a_name_is_free_again_for_its_metric_twins_after_deletion() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        planned = await cluster.metadata_writer.create_topic(NewTopic("a.b", 1, 1))
        await refused(cluster.metadata_writer.create_topic(NewTopic("a_b", 1, 1)), ErrorCode.INVALID_TOPIC_EXCEPTION)
        await cluster.metadata_writer.delete_topic(planned.topic_id)
        await cluster.metadata_writer.create_topic(NewTopic("a_b", 1, 1))

    with_cluster(scenario)


@pytest.mark.parametrize("outcome", ["done", "not done"])
def test_a_creation_whose_answer_is_lost_is_settled_and_happens_exactly_once(outcome: str) -> None:
    async def scenario(cluster: SmallCluster) -> None:
        cluster.store.lose_next_answer(outcome)  # type: ignore[arg-type]
        planned = await cluster.metadata_writer.create_topic(NewTopic("a.b", 1, 1))
        assert cluster.image.topics["a.b"].topic_id == planned.topic_id
        assert len(partition_keys(cluster.server)) == 1

    with_cluster(scenario)


@pytest.mark.parametrize("outcome", ["done", "not done"])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_each_part_of_a_large_creation_survives_a_lost_answer(number: int, outcome: str) -> None:
    async def scenario(cluster: SmallCluster) -> None:
        before_transaction(cluster, number, lambda: cluster.store.lose_next_answer(outcome))  # type: ignore[arg-type]
        planned = await cluster.metadata_writer.create_topic(NewTopic("a", 300, 1))
        assert cluster.image.topics["a"].topic_id == planned.topic_id
        assert len(cluster.image.topics["a"].partitions) == 300
        assert not cluster.image.loose

    with_cluster(scenario)


def test_a_store_that_never_answers_makes_the_outcome_unknown_not_failed() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        cluster.store.is_reachable = False
        with pytest.raises(OutcomeUnknown):
            await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1), timeout_ms=2_000)

    with_cluster(scenario)


def test_an_answer_waits_for_the_image_and_a_silent_watch_is_helped_out_by_a_listing() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        cluster.store.stall_watches(True)
        await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1))
        assert "a" in cluster.image.topics

    with_cluster(scenario)


def test_time_that_runs_out_before_the_image_has_the_change_is_reported_as_such() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        cluster.store.stall_watches(True)
        creation = cluster.metadata_writer.create_topic(NewTopic("a", 1, 1), timeout_ms=500)
        await refused(creation, ErrorCode.REQUEST_TIMED_OUT)
        cluster.store.stall_watches(False)
        await cluster.follower.wait_for(cluster.server.revision, timeout_s=5)
        assert "a" in cluster.image.topics

    with_cluster(scenario)


def test_a_topic_too_large_for_one_transaction_appears_in_one_step() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        created: list[tuple[str, ...]] = []
        partitions: list[int] = []

        def note(delta: object) -> None:
            created.append(delta.topics_created)  # type: ignore[attr-defined]
            partitions.append(len(delta.partitions))  # type: ignore[attr-defined]

        cluster.follower.subscribe(note)
        await cluster.metadata_writer.create_topic(NewTopic("a", 300, 1))
        assert [count for count in partitions if count] == [300]
        assert [names for names in created if names] == [("a",)]
        assert max(cluster.store.transactions) <= STORE_OPERATIONS_MAX
        assert not cluster.image.loose

    with_cluster(scenario)


def test_a_half_made_topic_is_invisible_and_swept_by_the_next_start() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = await SmallCluster(server, clock).start()

        before_transaction(first, 2, lambda: setattr(first.store, "is_reachable", False))
        with pytest.raises(OutcomeUnknown):
            await first.metadata_writer.create_topic(NewTopic("a", 300, 1), timeout_ms=1_000)
        assert partition_keys(server)

        again = await SmallCluster(server, clock).start()
        assert "a" not in again.image.topics
        assert not partition_keys(server)
        assert not server.list("topic-ids/").entries
        await again.metadata_writer.create_topic(NewTopic("a", 300, 1))

    simulate(scenario)


def before_transaction(cluster: SmallCluster, number: int, action: Callable[[], object]) -> None:
    """Run ``action`` just before the ``number``-th transaction from now."""

    def step() -> None:
        nonlocal number
        number -= 1
        if number:
            cluster.store.before_transact = step
        else:
            action()

    cluster.store.before_transact = step


def sweep_now(server: StoreServer) -> None:
    """What a broker that starts at this moment does to everything that looks half-made."""
    image = MetadataImage()
    image.load(server.list(""))
    for topic_id, states in sorted(image.loose.items()):
        loose = list(states)
        for start in range(0, len(loose), 100):
            server.transact(*loose_transaction(image, topic_id, loose[start : start + 100]))
            image.load(server.list(""))


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_sweep_that_meets_a_creation_under_way_fences_it_and_it_starts_over(number: int) -> None:
    async def scenario(cluster: SmallCluster) -> None:
        before_transaction(cluster, number, lambda: sweep_now(cluster.server))
        await cluster.metadata_writer.create_topic(NewTopic("a", 300, 1))
        assert len(cluster.image.topics["a"].partitions) == 300
        assert not cluster.image.loose

    with_cluster(scenario)


@pytest.mark.parametrize("number", [2, 3])
def test_a_sweep_that_meets_an_enlargement_under_way_fences_it_and_it_starts_over(number: int) -> None:
    async def scenario(cluster: SmallCluster) -> None:
        await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1))
        before_transaction(cluster, number, lambda: sweep_now(cluster.server))
        await cluster.metadata_writer.create_partitions(MorePartitions("a", 300))
        assert len(cluster.image.topics["a"].partitions) == 300
        assert not cluster.image.loose

    with_cluster(scenario)


def test_an_enlargement_that_lost_the_race_never_touches_the_winner_s_partitions() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        topic_id = (await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1))).topic_id
        live = PartitionState(leader=1, leader_epoch=9, partition_epoch=9, replicas=(1,), isr=(1,))

        def win() -> None:
            for start in (1, 101, 201):
                puts = partition_puts(topic_id, [live] * min(100, 253 - start), first=start)
                cluster.server.transact([], [*puts, *([topic_put("a", topic_id, 253)] if start == 201 else [])])

        before_transaction(cluster, 2, win)
        await cluster.metadata_writer.create_partitions(MorePartitions("a", 300))
        partitions = cluster.image.topics["a"].partitions
        assert len(partitions) == 300
        assert {state.leader_epoch for state in partitions[1:253]} == {9}

    with_cluster(scenario)


def test_deleting_a_large_topic_removes_every_key_of_it() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        before = {entry.key for entry in cluster.server.list("").entries}
        planned = await cluster.metadata_writer.create_topic(NewTopic("a.b", 300, 1, configs=(("retention.ms", "5"),)))
        await cluster.metadata_writer.delete_topic(planned.topic_id)
        assert {entry.key for entry in cluster.server.list("").entries} == before
        assert "a.b" not in cluster.image.topics
        await refused(cluster.metadata_writer.delete_topic(planned.topic_id), ErrorCode.UNKNOWN_TOPIC_ID)

    with_cluster(scenario)


@pytest.mark.parametrize("outcome", ["done", "not done"])
def test_a_deletion_whose_answer_is_lost_is_a_deletion(outcome: str) -> None:
    async def scenario(cluster: SmallCluster) -> None:
        planned = await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1))
        cluster.store.lose_next_answer(outcome)  # type: ignore[arg-type]
        await cluster.metadata_writer.delete_topic(planned.topic_id)
        assert not partition_keys(cluster.server)

    with_cluster(scenario)


def test_a_topic_made_anew_has_another_id_and_none_of_the_old_settings() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        old = await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1, configs=(("retention.ms", "5"),)))
        await cluster.metadata_writer.delete_topic(old.topic_id)
        new = await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1))
        assert new.topic_id != old.topic_id
        assert cluster.image.topic_configs("a") == {}

    with_cluster(scenario)


def test_settings_written_while_their_topic_is_deleted_do_not_outlive_it() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        planned = await cluster.metadata_writer.create_topic(NewTopic("a", 1, 1))
        altering = asyncio.ensure_future(
            cluster.metadata_writer.alter_configs("topic", "a", lambda _: {"retention.ms": "5"})
        )
        await asyncio.gather(altering, cluster.metadata_writer.delete_topic(planned.topic_id), return_exceptions=True)
        assert cluster.server.get(keys.config("topic", "a")) is None

    with_cluster(scenario)


def test_partitions_are_added_behind_the_existing_ones() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        await cluster.metadata_writer.create_topic(NewTopic("a", 2, 1))
        before = cluster.image.topics["a"].partitions
        await cluster.metadata_writer.create_partitions(MorePartitions("a", 300))
        assert len(cluster.image.topics["a"].partitions) == 300
        assert cluster.image.topics["a"].partitions[:2] == before
        await refused(cluster.metadata_writer.create_partitions(MorePartitions("a", 300)), ErrorCode.INVALID_PARTITIONS)

    with_cluster(scenario)


def test_of_two_enlargements_at_once_the_later_one_counts_from_what_the_first_made() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = await SmallCluster(server, clock, broker_id=1).start()
        second = await SmallCluster(server, clock, broker_id=2).start()
        await first.metadata_writer.create_topic(NewTopic("a", 1, 1))
        await second.follower.wait_for(server.revision, timeout_s=5)
        outcomes = await asyncio.gather(
            first.metadata_writer.create_partitions(MorePartitions("a", 200)),
            second.metadata_writer.create_partitions(MorePartitions("a", 250)),
            return_exceptions=True,
        )
        await first.follower.wait_for(server.revision, timeout_s=5)
        partitions = first.image.topics["a"].partitions
        too_late = [each for each in outcomes if isinstance(each, BrokerError)]
        assert len(partitions) == 250
        assert all(error.code is ErrorCode.INVALID_PARTITIONS for error in too_late)
        assert all(state.leader in (1, 2) for state in partitions)

    simulate(scenario)


def test_an_enlargement_cut_short_is_invisible_and_swept_by_the_next_start() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        first = await SmallCluster(server, clock).start()
        await first.metadata_writer.create_topic(NewTopic("a", 1, 1))

        before_transaction(first, 2, lambda: setattr(first.store, "is_reachable", False))
        with pytest.raises(OutcomeUnknown):
            await first.metadata_writer.create_partitions(MorePartitions("a", 300), timeout_ms=1_000)
        again = await SmallCluster(server, clock).start()
        assert len(again.image.topics["a"].partitions) == 1
        assert len(partition_keys(server)) == 1

    simulate(scenario)


def test_no_alteration_is_lost_when_two_change_the_same_settings_at_once() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        brokers = [await SmallCluster(server, clock, broker_id=n).start() for n in (1, 2)]
        await brokers[0].metadata_writer.create_topic(NewTopic("a", 1, 1))
        await brokers[1].follower.wait_for(server.revision, timeout_s=5)
        await asyncio.gather(
            brokers[0].metadata_writer.alter_configs("topic", "a", lambda now: {**now, "retention.ms": "1"}),
            brokers[1].metadata_writer.alter_configs("topic", "a", lambda now: {**now, "segment.ms": "2"}),
        )
        await brokers[0].follower.wait_for(server.revision, timeout_s=5)
        assert brokers[0].image.topic_configs("a") == {"retention.ms": "1", "segment.ms": "2"}

    simulate(scenario)


def test_settings_of_brokers_and_of_all_brokers_are_kept_apart_and_removed_when_empty() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        await cluster.metadata_writer.alter_configs("broker", "", lambda _: {"log.retention.ms": "1"})
        await cluster.metadata_writer.alter_configs("broker", "1", lambda _: {"log.retention.ms": "2"})
        assert cluster.image.broker_configs(None) == {"log.retention.ms": "1"}
        assert cluster.image.broker_configs(1) == {"log.retention.ms": "2"}
        assert cluster.image.configured("broker") == ["", "1"]
        await cluster.metadata_writer.alter_configs("broker", "", lambda _: {})
        assert cluster.image.broker_configs(None) == {}
        assert cluster.image.configured("broker") == ["1"]

    with_cluster(scenario)


def test_settings_of_a_topic_that_does_not_exist_are_refused() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        await refused(
            cluster.metadata_writer.alter_configs("topic", "nope", lambda _: {"a": "b"}),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )

    with_cluster(scenario)


def test_automatic_creation_asked_for_many_times_creates_once() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        for _ in range(5):
            cluster.metadata_writer.create_in_background(NewTopic("a"))
        creations = [task for task in cluster.tasks.tasks if task.get_name() == "create topic a"]
        assert len(creations) == 1
        await creations[0]
        assert "a" in cluster.image.topics

    with_cluster(scenario)


def test_validate_only_plans_and_writes_nothing() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        revision = cluster.server.revision
        planned = await cluster.metadata_writer.create_topic(NewTopic("a", 3, 1), validate_only=True)
        assert len(planned.partitions) == 3
        assert len(id_text(planned.topic_id)) == 22
        assert cluster.server.revision == revision

    with_cluster(scenario)
