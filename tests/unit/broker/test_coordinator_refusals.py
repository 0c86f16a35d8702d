"""What the APIs of groups and transactions answer who may not ask, where nobody leads, where the leader still reads.

Each code is what Kafka 4.3 answers for the same reason: ``docs/errors-transactions-and-groups.md`` has them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import pytest

from penstock.broker.routes import HANDLERS, handler_module
from penstock.broker.security.authorizer import Operation, ResourceType
from penstock.cluster.topics import NewTopic
from penstock.coordination.home import Producer
from penstock.coordination.runtime import CoordinatorRuntime, ShardState
from penstock.model import BrokerError, ErrorCode
from penstock.protocol.apis import APIS
from support.wire import API_KEYS
from unit.broker.asking import Asker
from unit.broker.test_transaction_handlers import Rules
from unit.cluster.small_cluster import SmallCluster, with_cluster
from unit.coordination.test_coordinator_runtime import Home

GROUP, ID, TOPIC = "readers", "orders", "payments"
CLUSTER = (ResourceType.CLUSTER, "kafka-cluster")
THE_GROUP = (ResourceType.GROUP, GROUP)
THE_ID = (ResourceType.TRANSACTIONAL_ID, ID)
THE_TOPIC = (ResourceType.TOPIC, TOPIC)


class Case(NamedTuple):
    """A request that would be answered, if it were not for something."""

    api: str
    fields: dict[str, Any]
    version: int | None = None  # the newest


PARTITION = [{"partition_index": 0}]
COMMITTED = [{"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
OF_PRODUCER = {"transactional_id": ID, "producer_id": 0, "producer_epoch": 0}
OF_BROKER = [{**OF_PRODUCER, "topics": [{"name": TOPIC, "partitions": [0]}]}]

JOIN = Case("JoinGroup", {"group_id": GROUP, "session_timeout_ms": 10_000, "protocol_type": "consumer"})
FIRST_JOIN = JOIN._replace(fields={**JOIN.fields, "protocols": [{"name": "range", "metadata": b""}]}, version=3)
SYNC = Case("SyncGroup", {"group_id": GROUP, "member_id": "m", "protocol_type": "consumer", "protocol_name": "range"})
HEARTBEAT = Case("Heartbeat", {"group_id": GROUP, "member_id": "m"})
LEAVE = Case("LeaveGroup", {"group_id": GROUP, "members": [{"member_id": "m"}]})
COMMIT = Case("OffsetCommit", {"group_id": GROUP, "topics": COMMITTED}, 9)
FETCH = Case("OffsetFetch", {"groups": [{"group_id": GROUP, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}]}, 9)
DELETE_OFFSETS = Case("OffsetDelete", {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": PARTITION}]})
DESCRIBE = Case("DescribeGroups", {"groups": [GROUP]})
LIST = Case("ListGroups", {})
DELETE = Case("DeleteGroups", {"groups_names": [GROUP]})
BEAT = Case(
    "ConsumerGroupHeartbeat",
    {
        "group_id": GROUP,
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": [TOPIC],
        "topic_partitions": [],
    },
)
DESCRIBE_CONSUMERS = Case("ConsumerGroupDescribe", {"group_ids": [GROUP]})
FIND_GROUP = Case("FindCoordinator", {"key_type": 0, "coordinator_keys": [GROUP]})
FIND_ID = Case("FindCoordinator", {"key_type": 1, "coordinator_keys": [ID]})
INIT = Case("InitProducerId", {"transactional_id": ID, "transaction_timeout_ms": 1_000})
INIT_IDEMPOTENT = Case("InitProducerId", {"transactional_id": None})
ADD = Case(
    "AddPartitionsToTxn",
    {
        "v3_and_below_transactional_id": ID,
        "v3_and_below_producer_id": 0,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": [{"name": TOPIC, "partitions": [0]}],
    },
    3,
)
ADD_FOR_CLIENTS = Case("AddPartitionsToTxn", {"transactions": OF_BROKER})
VERIFY_FOR_CLIENTS = Case("AddPartitionsToTxn", {"transactions": [{**OF_BROKER[0], "verify_only": True}]})
ADD_OFFSETS = Case("AddOffsetsToTxn", {**OF_PRODUCER, "group_id": GROUP})
END = Case("EndTxn", {**OF_PRODUCER, "committed": True})
TXN_COMMIT = Case("TxnOffsetCommit", {**OF_PRODUCER, "group_id": GROUP, "topics": COMMITTED})
TXN_COMMIT_OLD = TXN_COMMIT._replace(version=3)
MARKERS = Case("WriteTxnMarkers", {"markers": []})
DESCRIBE_IDS = Case("DescribeTransactions", {"transactional_ids": [ID]})
LIST_IDS = Case("ListTransactions", {})
PRODUCERS = Case("DescribeProducers", {"topics": [{"name": TOPIC, "partition_indexes": [0]}]})

OF_GROUPS = [JOIN, SYNC, LEAVE, COMMIT, FETCH, DELETE_OFFSETS, DESCRIBE, DELETE, BEAT, DESCRIBE_CONSUMERS]
OF_IDS = [INIT, ADD, ADD_FOR_CLIENTS, VERIFY_FOR_CLIENTS, ADD_OFFSETS, END, TXN_COMMIT, TXN_COMMIT_OLD, DESCRIBE_IDS]


def name_of(value: object) -> str | None:
    if isinstance(value, Case):
        return value.api if value.version is None else f"{value.api} v{value.version}"
    return value.name if isinstance(value, ErrorCode) else None


async def loaded(runtime: CoordinatorRuntime[Any]) -> None:
    """Of the fifty partitions each takes a few turns of the loop."""
    for _ in range(500):
        if not runtime.is_loading:
            return
        await asyncio.sleep(0)
    raise AssertionError("still loading")


class RefusingHome(Home):
    """``commit_error``: what is appended from now on is never known to be durable."""

    commit_error: BrokerError | None = None

    async def committed(self, partition: int, end_offset: int) -> None:
        if self.commit_error is not None:
            raise self.commit_error
        await super().committed(partition, end_offset)

    def when_committed(self, partition: int, end_offset: int, done: Callable[[BrokerError | None], None]) -> None:
        if self.commit_error is not None:
            done(self.commit_error)
        else:
            super().when_committed(partition, end_offset, done)


class Coordinators(Asker):
    """A broker that coordinates every group and every transactional id, with both logs in memory."""

    async def start(self, *, leads: bool = True) -> Coordinators:
        await self.cluster.controller.create_topic(NewTopic(TOPIC, 1, 1), timeout_ms=1_000)
        self.homes: dict[str, RefusingHome] = {}
        for coordinator, key in ((self.broker.groups, GROUP), (self.broker.transactions, ID)):
            self.homes[key] = coordinator.runtime._home = RefusingHome()
            assert await coordinator.topic.leader_for(key) == 1
            for partition in range(50 if leads else 0):
                coordinator.runtime.lead(partition, 0)
            await loaded(coordinator.runtime)
        return self

    async def answer(self, case: Case) -> Any:
        key = API_KEYS[case.api]
        assert key in HANDLERS
        request = msgspec.convert(case.fields, APIS[key].request)
        version = APIS[key].versions[-1] if case.version is None else case.version
        return await self.ask(handler_module(key), version, request)

    async def codes(self, case: Case) -> set[ErrorCode]:
        """Everything but 0 that the answer says."""
        try:
            return set(_codes(await self.answer(case)))
        except BrokerError as refused:  # of the request as a whole: the dispatcher finds the places for it
            return {refused.code}


def _codes(value: Any) -> Iterator[ErrorCode]:
    if isinstance(value, list):
        for each in value:
            yield from _codes(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            inner = getattr(value, name)
            if name.endswith("error_code") and inner:
                yield ErrorCode(inner)
            else:
                yield from _codes(inner)


def with_coordinators(
    scenario: Callable[[Coordinators], Awaitable[None]], *, leads: bool = True, authorizer: Any = None
) -> None:
    async def run(cluster: SmallCluster) -> None:
        await scenario(await Coordinators(cluster, authorizer=authorizer).start(leads=leads))

    with_cluster(run)


def set_loading(runtime: CoordinatorRuntime[Any]) -> None:
    for shard in runtime._shards.values():
        shard.state = ShardState.LOADING


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
