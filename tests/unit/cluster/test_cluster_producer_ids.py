"""Producer ids: never twice, not even after a crash, a lost answer or from two brokers."""

from __future__ import annotations

import asyncio

import pytest

from headpond.cluster.producer_ids import BLOCK_SIZE, ProducerIds
from headpond.model import BrokerError, ErrorCode
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import SimulatedMetadataStore, StoreServer
from unit.cluster.small_cluster import simulate


def ids_of(server: StoreServer, clock: ManualClock) -> tuple[ProducerIds, SimulatedMetadataStore]:
    store = SimulatedMetadataStore(server, clock, lambda: 0.001)
    return ProducerIds(store, clock), store


def test_ids_start_at_zero_and_one_block_serves_many() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        ids, _ = ids_of(server, clock)
        assert [await ids.take() for _ in range(BLOCK_SIZE + 1)] == list(range(BLOCK_SIZE + 1))
        assert server.revision == 2

    simulate(scenario)


def test_a_restart_never_hands_out_an_old_id() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        before = await ids_of(server, clock)[0].take()
        assert await ids_of(server, clock)[0].take() == before + BLOCK_SIZE

    simulate(scenario)


def test_many_askers_at_once_on_two_brokers_get_different_ids() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        async def ask(ids: ProducerIds) -> list[int]:
            return [await ids.take() for _ in range(BLOCK_SIZE // 4)]

        brokers = [ids_of(server, clock)[0] for _ in range(2)]
        answers = await asyncio.gather(*(ask(ids) for ids in brokers for _ in range(6)))
        taken = [producer_id for answer in answers for producer_id in answer]
        assert len(set(taken)) == len(taken) == 3 * BLOCK_SIZE

    simulate(scenario)


@pytest.mark.parametrize("outcome", ["done", "not done"])
def test_a_block_whose_answer_was_lost_is_left_alone(outcome: str) -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        ids, store = ids_of(server, clock)
        store.lose_next_answer(outcome)  # type: ignore[arg-type]
        mine = [await ids.take() for _ in range(BLOCK_SIZE)]
        theirs = await ids_of(server, clock)[0].take()
        assert theirs not in mine and len(set(mine)) == BLOCK_SIZE

    simulate(scenario)


def test_a_store_out_of_reach_is_an_error_that_clients_retry() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        ids, store = ids_of(server, clock)
        store.is_reachable = False
        with pytest.raises(BrokerError) as caught:
            await ids.take()
        assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        store.is_reachable = True
        assert await ids.take() == 0

    simulate(scenario)


def test_ids_that_an_adopted_log_knows_are_never_handed_out() -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        ids, _ = ids_of(server, clock)
        assert await ids.take() == 0
        await ids.keep_above(5_432)
        assert await ids.take() > 5_432
        assert await ids_of(server, clock)[0].take() > 5_432
        await ids.keep_above(3)  # nothing to do
        assert await ids.take() > 5_432

    simulate(scenario)
