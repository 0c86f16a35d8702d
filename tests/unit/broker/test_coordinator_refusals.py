"""What the APIs of groups and transactions answer who may not ask, where nobody leads, where the leader still reads.

Each code is what Kafka 4.3 answers for the same reason: ``docs/errors-transactions-and-groups.md`` has them all.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headpond.broker.security.authorizer import Operation, ResourceType
from headpond.coordination.home import Producer
from headpond.model import BrokerError, ErrorCode
from unit.broker.coordinator_cases import (
    ADD,
    ADD_FOR_CLIENTS,
    ADD_OFFSETS,
    BEAT,
    CLUSTER,
    COMMIT,
    DELETE,
    DELETE_OFFSETS,
    DESCRIBE,
    DESCRIBE_CONSUMERS,
    DESCRIBE_IDS,
    END,
    FETCH,
    FIND_GROUP,
    FIND_ID,
    FIRST_JOIN,
    GROUP,
    HEARTBEAT,
    ID,
    INIT,
    INIT_IDEMPOTENT,
    JOIN,
    LEAVE,
    LIST,
    LIST_IDS,
    MARKERS,
    OF_GROUPS,
    OF_IDS,
    PRODUCERS,
    SYNC,
    THE_GROUP,
    THE_ID,
    THE_TOPIC,
    TXN_COMMIT,
    TXN_COMMIT_OLD,
    VERIFY_FOR_CLIENTS,
    Case,
    Coordinators,
    name_of,
    set_loading,
    with_coordinators,
)
from unit.broker.test_transaction_handlers import Rules


@pytest.mark.parametrize("case", [HEARTBEAT, *OF_GROUPS, *OF_IDS], ids=name_of)
def test_who_leads_nothing_coordinates_nothing(case: Case) -> None:
    async def scenario(broker: Coordinators) -> None:
        assert await broker.codes(case) == {ErrorCode.NOT_COORDINATOR}

    with_coordinators(scenario, leads=False)


@pytest.mark.parametrize("case", [*OF_GROUPS, LIST, *OF_IDS, LIST_IDS], ids=name_of)
def test_a_coordinator_that_is_still_reading_says_so(case: Case) -> None:
    async def scenario(broker: Coordinators) -> None:
        set_loading(broker.broker.groups.runtime)
        set_loading(broker.broker.transactions.runtime)
        assert await broker.codes(case) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}

    with_coordinators(scenario)


def test_a_heartbeat_is_well_received_by_a_coordinator_that_is_still_reading() -> None:
    async def scenario(broker: Coordinators) -> None:
        set_loading(broker.broker.groups.runtime)
        assert await broker.codes(HEARTBEAT) == set()

    with_coordinators(scenario)


@pytest.mark.parametrize(
    ("case", "operation", "what", "expected"),
    [
        (JOIN, Operation.READ, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (SYNC, Operation.READ, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (HEARTBEAT, Operation.READ, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (LEAVE, Operation.READ, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (COMMIT, Operation.READ, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (COMMIT, Operation.READ, THE_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (FETCH, Operation.DESCRIBE, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (FETCH, Operation.DESCRIBE, THE_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (DELETE_OFFSETS, Operation.DELETE, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (DESCRIBE, Operation.DESCRIBE, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (DELETE, Operation.DELETE, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (BEAT, Operation.READ, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (BEAT, Operation.DESCRIBE, THE_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (DESCRIBE_CONSUMERS, Operation.DESCRIBE, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (FIND_GROUP, Operation.DESCRIBE, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (FIND_ID, Operation.DESCRIBE, THE_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (INIT, Operation.WRITE, THE_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ADD, Operation.WRITE, THE_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ADD, Operation.WRITE, THE_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ADD_FOR_CLIENTS, Operation.CLUSTER_ACTION, CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ADD_OFFSETS, Operation.WRITE, THE_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ADD_OFFSETS, Operation.READ, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (END, Operation.WRITE, THE_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (TXN_COMMIT, Operation.WRITE, THE_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (TXN_COMMIT, Operation.READ, THE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (TXN_COMMIT, Operation.READ, THE_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (DESCRIBE_IDS, Operation.DESCRIBE, THE_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (PRODUCERS, Operation.READ, THE_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
    ids=name_of,
)
def test_who_may_not_is_told_so(
    case: Case, operation: Operation, what: tuple[ResourceType, str], expected: ErrorCode
) -> None:
    async def scenario(broker: Coordinators) -> None:
        assert await broker.codes(case) == {expected}

    with_coordinators(scenario, authorizer=Rules((operation, *what)))


def test_an_offset_of_a_forbidden_topic_is_not_deleted() -> None:
    """In a group that is there: without one, that is told first."""

    async def scenario(broker: Coordinators) -> None:
        broker.broker.authorizer = Rules()
        assert await broker.codes(COMMIT) == set()
        broker.broker.authorizer = Rules((Operation.READ, *THE_TOPIC))
        assert await broker.codes(DELETE_OFFSETS) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}

    with_coordinators(scenario)


def test_a_consumer_group_with_a_forbidden_topic_is_not_described() -> None:
    async def scenario(broker: Coordinators) -> None:
        broker.broker.authorizer = Rules()
        assert await broker.codes(BEAT) == set()
        broker.broker.authorizer = Rules((Operation.DESCRIBE, *THE_TOPIC))
        assert await broker.codes(DESCRIBE_CONSUMERS) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}

    with_coordinators(scenario)


@pytest.mark.parametrize("case", [INIT_IDEMPOTENT], ids=name_of)
def test_an_idempotent_producer_that_may_write_nowhere_gets_no_id(case: Case) -> None:
    class Nowhere(Rules):
        def allows_somewhere(self, *_: object) -> bool:
            return False

    async def scenario(broker: Coordinators) -> None:
        assert await broker.codes(case) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}

    with_coordinators(scenario, authorizer=Nowhere((Operation.IDEMPOTENT_WRITE, *CLUSTER)))


def test_markers_are_for_brokers_and_operators() -> None:
    async def scenario(broker: Coordinators) -> None:
        assert await broker.codes(MARKERS) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}

    forbidden = Rules((Operation.ALTER, *CLUSTER), (Operation.CLUSTER_ACTION, *CLUSTER))
    with_coordinators(scenario, authorizer=forbidden)


async def brought_about(broker: Coordinators, case: Case) -> Case:
    """What must have happened before, so that ``case`` has something to write."""
    if case.api in ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"):
        assert await broker.codes(INIT) == set()
    if case.api == "EndTxn":
        assert await broker.codes(ADD) == set()
    if case.api in ("OffsetDelete", "DeleteGroups"):
        assert await broker.codes(COMMIT) == set()
    if case.api in ("SyncGroup", "LeaveGroup"):
        member_id = (await broker.answer(FIRST_JOIN)).member_id
        at_generation = {"member_id": member_id, "generation_id": 1}
        if case.api == "SyncGroup":
            return case._replace(fields={**case.fields, **at_generation})
        assert await broker.codes(SYNC._replace(fields={**SYNC.fields, **at_generation})) == set()
        return case._replace(fields={**case.fields, "members": [{"member_id": member_id}]})
    return case


WRITING = [
    *(COMMIT, DELETE_OFFSETS, DELETE, BEAT, FIRST_JOIN, SYNC, LEAVE),
    *(INIT, ADD, ADD_FOR_CLIENTS, ADD_OFFSETS, END, TXN_COMMIT),
]


@pytest.mark.parametrize(
    ("log_says", "answered"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=name_of,
)
@pytest.mark.parametrize("case", WRITING, ids=name_of)
def test_what_the_log_refuses_is_said_in_a_coordinators_words(
    case: Case, log_says: ErrorCode, answered: ErrorCode
) -> None:
    async def scenario(broker: Coordinators) -> None:
        asked = await brought_about(broker, case)
        for home in broker.homes.values():
            home.append_error = BrokerError(log_says)
        assert await broker.codes(asked) == {answered}

    with_coordinators(scenario)


@pytest.mark.parametrize("case", [TXN_COMMIT], ids=name_of)
@pytest.mark.parametrize("answered", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR], ids=name_of)
def test_offsets_of_a_transaction_need_the_log_of_the_group_as_well(case: Case, answered: ErrorCode) -> None:
    log_says = {
        ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_SERVER_ERROR: ErrorCode.MESSAGE_TOO_LARGE,
    }

    async def scenario(broker: Coordinators) -> None:
        asked = await brought_about(broker, case)
        broker.homes[GROUP].append_error = BrokerError(log_says[answered])
        assert await broker.codes(asked) == {answered}

    with_coordinators(scenario)


@pytest.mark.parametrize("case", WRITING, ids=name_of)
@pytest.mark.parametrize("answered", [ErrorCode.COORDINATOR_NOT_AVAILABLE], ids=name_of)
def test_what_is_not_durable_in_time_is_neither_done_nor_failed(case: Case, answered: ErrorCode) -> None:
    async def scenario(broker: Coordinators) -> None:
        asked = await brought_about(broker, case)
        for home in broker.homes.values():
            home.commit_error = BrokerError(ErrorCode.REQUEST_TIMED_OUT)
        assert await broker.codes(asked) == {answered}

    with_coordinators(scenario)


@pytest.mark.parametrize(
    "case", [INIT, ADD, ADD_FOR_CLIENTS, VERIFY_FOR_CLIENTS, ADD_OFFSETS, END, TXN_COMMIT, TXN_COMMIT_OLD], ids=name_of
)
def test_an_id_whose_transaction_is_ending_is_busy(case: Case) -> None:
    async def scenario(broker: Coordinators) -> None:
        assert await broker.codes(INIT) == set()
        assert await broker.codes(ADD) == set()
        machine = broker.broker.transactions.runtime._active(
            broker.broker.transactions.runtime._partition_of(ID)
        ).machine
        machine.completion._rounds._sender = Silent()  # no marker ever arrives
        at_epoch = END._replace(version=4)
        assert await broker.codes(at_epoch) == set()
        assert await broker.codes(case) == {ErrorCode.CONCURRENT_TRANSACTIONS}

    with_coordinators(scenario)


class Silent:
    def send(self, *_: object) -> None:
        pass


def test_producers_of_a_partition_are_described_by_its_leader_alone() -> None:
    async def scenario(broker: Coordinators) -> None:
        followed: Any = SimpleNamespace(partition=lambda _: SimpleNamespace(is_leader=False))
        broker.broker.replicas = followed
        assert await broker.codes(PRODUCERS) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}

    with_coordinators(scenario)


def test_of_a_producer_that_is_not_known_nothing_is_verified() -> None:
    async def scenario(broker: Coordinators) -> None:
        verified = await broker.broker.transactions.verifier.verify(ID, Producer(7, 0), [])
        assert verified == {}
        assert await broker.codes(VERIFY_FOR_CLIENTS) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}

    with_coordinators(scenario)
