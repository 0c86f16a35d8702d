"""Lists and descriptions of groups and transactions hold nothing that a crash could take back, and have no holes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from headpond.broker.handlers.transactions import list_transactions
from headpond.broker.requests.context import Context
from headpond.config.groups import GroupSettings
from headpond.coordination.runtime import CoordinatorRuntime, ShardState
from headpond.model import BrokerError, ErrorCode, patterns
from headpond.model.patterns import Pattern
from headpond.protocol.schema.list_transactions import ListTransactionsRequest
from simulation.harness.turns import settle
from simulation.harness.workers import inside_worker
from unit.broker.coordinator_cases import (
    BEAT,
    COMMIT,
    DESCRIBE,
    DESCRIBE_CONSUMERS,
    GROUP,
    INIT,
    LIST,
    LIST_IDS,
    Case,
    Coordinators,
    name_of,
    with_coordinators,
)

Asked: TypeAlias = "asyncio.Future[set[ErrorCode]]"


def set_broken(runtime: CoordinatorRuntime[Any]) -> None:
    runtime._shards[7].state = ShardState.BROKEN


@pytest.mark.parametrize("case", [LIST, LIST_IDS], ids=name_of)
def test_there_is_no_list_while_a_part_of_it_can_not_be_read(case: Case) -> None:
    async def scenario(broker: Coordinators) -> None:
        assert await broker.codes(case) == set()
        set_broken(broker.broker.groups.runtime)
        set_broken(broker.broker.transactions.runtime)
        assert await broker.codes(case) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}

    with_coordinators(scenario)


async def asked_before_the_commit(broker: Coordinators, case: Case) -> tuple[Asked, Asked]:
    """A commit of a new group that is written and not durable, and a question: what each will be answered."""
    broker.homes[GROUP].commits_itself = False
    committed = asyncio.ensure_future(broker.codes(COMMIT))
    told = asyncio.ensure_future(broker.codes(case))
    await settle(100)
    return committed, told


@pytest.mark.parametrize("case", [LIST, DESCRIBE, DESCRIBE_CONSUMERS], ids=name_of)
def test_what_is_told_of_a_group_is_committed(case: Case) -> None:
    async def scenario(broker: Coordinators) -> None:
        home = broker.homes[GROUP]
        committed, told = await asked_before_the_commit(broker, case)
        assert len(home.batches) == 1
        assert not told.done()
        home.commit()
        assert await committed == set()
        await told

    with_coordinators(scenario)


@pytest.mark.parametrize("case", [LIST, DESCRIBE, DESCRIBE_CONSUMERS], ids=name_of)
def test_what_is_not_known_to_be_committed_in_time_is_not_told(case: Case) -> None:
    async def scenario(broker: Coordinators) -> None:
        committed, told = await asked_before_the_commit(broker, case)
        broker.homes[GROUP]._waits.fail(BrokerError(ErrorCode.REQUEST_TIMED_OUT))
        assert await committed == await told == {ErrorCode.COORDINATOR_NOT_AVAILABLE}

    with_coordinators(scenario)


def test_ids_are_matched_by_workers_a_portion_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TEXTS_AT_ONCE", 1)

    async def scenario(broker: Coordinators) -> None:
        for number in range(10):
            named = INIT._replace(fields={**INIT.fields, "transactional_id": f"id-{number}"})
            assert await broker.codes(named) == set()
        matched: list[tuple[list[str], bool]] = []
        match = Pattern.matching
        monkeypatch.setattr(
            Pattern, "matching", lambda self, ids: matched.append((list(ids), inside_worker())) or match(self, ids)
        )
        request = ListTransactionsRequest(transactional_id_pattern="id-[1-3]")
        answer = await broker.ask(list_transactions, 2, request)
        assert sorted(each.transactional_id for each in answer.transaction_states) == ["id-1", "id-2", "id-3"]
        assert sorted(matched) == [([f"id-{number}"], True) for number in range(10)]

    with_coordinators(scenario)


def test_ids_are_not_matched_any_more_when_the_client_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TEXTS_AT_ONCE", 1)

    async def scenario(broker: Coordinators) -> None:
        for number in range(10):
            named = INIT._replace(fields={**INIT.fields, "transactional_id": f"id-{number}"})
            assert await broker.codes(named) == set()
        client = SimpleNamespace(closed=False)
        matched: list[str] = []

        def matching(_: Pattern, ids: list[str]) -> list[str]:
            matched.extend(ids)
            client.closed = len(matched) == 3
            return []

        monkeypatch.setattr(Pattern, "matching", matching)
        context = Context(broker.broker, broker.listener, 2, asker=client)
        await list_transactions.handle(context, ListTransactionsRequest(transactional_id_pattern="id-.*"))
        assert len(matched) == 3

    with_coordinators(scenario)


@pytest.mark.parametrize("case", [BEAT, DESCRIBE_CONSUMERS], ids=name_of)
def test_the_new_protocol_is_refused_where_it_is_not_among_the_rebalance_protocols(case: Case) -> None:
    async def scenario(broker: Coordinators) -> None:
        broker.broker.groups._broker_settings = lambda: GroupSettings(has_consumer_groups=False)
        assert await broker.codes(case) == {ErrorCode.UNSUPPORTED_VERSION}

    with_coordinators(scenario)


def test_filters_of_a_list_take_any_case() -> None:
    async def scenario(broker: Coordinators) -> None:
        await broker.codes(COMMIT)
        for states, kinds in ((["Asleep", " eMPTY "], ["CLASSIC"]), ([], ["Classic"]), (["empty"], [])):
            listed = await broker.answer(LIST._replace(fields={"states_filter": states, "types_filter": kinds}))
            assert [group.group_id for group in listed.groups] == [GROUP]

    with_coordinators(scenario)


def test_groups_that_are_another_brokers_by_now_are_not_listed() -> None:
    async def scenario(broker: Coordinators) -> None:
        home = broker.homes[GROUP]
        home.commits_itself = False
        joined = asyncio.ensure_future(broker.codes(COMMIT))
        await settle(10)
        listed = asyncio.ensure_future(broker.answer(LIST))
        await settle(10)
        home.lose()
        assert await joined == {ErrorCode.NOT_COORDINATOR}
        assert (await listed).groups == []

    with_coordinators(scenario)
