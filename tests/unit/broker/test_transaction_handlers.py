"""The handlers of transactions. The expected codes are the answers of Apache Kafka 4.3.1 to the same requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headpond.broker.handlers.groups import find_coordinator
from headpond.broker.handlers.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
)
from headpond.broker.requests.context import Principal
from headpond.broker.security.authorizer import Operation, ResourceType
from headpond.cluster.topics import NewTopic
from headpond.coordination.home import Producer
from headpond.coordination.transactions.verifier import produce_error, verification_error
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.add_offsets_to_txn import AddOffsetsToTxnRequest
from headpond.protocol.schema.add_partitions_to_txn import AddPartitionsToTxnRequest
from headpond.protocol.schema.describe_transactions import DescribeTransactionsRequest
from headpond.protocol.schema.end_txn import EndTxnRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.list_transactions import ListTransactionsRequest
from simulation.harness.turns import settle
from unit.broker.asking import Asker
from unit.cluster.small_cluster import SmallCluster, with_cluster
from unit.coordination.test_coordinator_runtime import Home

ID = "orders"
Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
OfBroker = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction


class Rules:
    """Allows everything but some."""

    generation = 0

    def __init__(self, *forbidden: tuple[Operation, ResourceType, str]) -> None:
        self.forbidden = forbidden

    def allows(self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        return (operation, kind, name) not in self.forbidden

    def allows_somewhere(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        return True


class Coordinated(Asker):
    """A broker that coordinates every transactional id, with the log in memory."""

    async def start(self) -> None:
        await self.cluster.metadata_writer.create_topic(NewTopic("payments", 2, 1), timeout_ms=1_000)
        self.transactions = self.broker.transactions
        self.transactions.runtime._home = Home()
        self.cluster.image.features["transaction.version"] = 2

    async def lead(self) -> None:
        found = await self.ask(find_coordinator, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=[ID]))
        assert [(each.node_id, each.error_code) for each in found.coordinators] == [(1, 0)]
        for partition in range(50):
            self.transactions.runtime.lead(partition, 0)
        await settle()
        assert not self.transactions.runtime.is_loading

    async def init(self, name: str | None = ID, version: int = 5, **fields: Any) -> tuple[ErrorCode, Producer]:
        fields = {"transaction_timeout_ms": 60_000, **fields}
        answer = await self.ask(init_producer_id, version, InitProducerIdRequest(transactional_id=name, **fields))
        return ErrorCode(answer.error_code), Producer(answer.producer_id, answer.producer_epoch)

    async def add(self, producer: Producer, *topics: Topic, name: str = ID, version: int = 3) -> list[list[ErrorCode]]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=list(topics or (Topic(name="payments", partitions=[0]),)),
        )
        answer = await self.ask(add_partitions_to_txn, version, request)
        return codes(answer.results_by_topic_v3_and_below)

    async def add_for_clients(self, *asked: OfBroker, version: int = 5) -> Any:
        return await self.ask(add_partitions_to_txn, version, AddPartitionsToTxnRequest(transactions=list(asked)))

    async def end(
        self, producer: Producer, *, commit: bool, name: str = ID, version: int = 5
    ) -> tuple[ErrorCode, Producer]:
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=commit
        )
        answer = await self.ask(end_txn, version, request)
        return ErrorCode(answer.error_code), Producer(answer.producer_id, answer.producer_epoch)


def codes(topics: Any) -> list[list[ErrorCode]]:
    return [[ErrorCode(each.partition_error_code) for each in topic.results_by_partition] for topic in topics]


def coordinated(scenario: Callable[[Coordinated], Awaitable[None]], *, authorizer: Any = None) -> None:
    async def run(cluster: SmallCluster) -> None:
        broker = Coordinated(cluster, authorizer=authorizer)
        await broker.start()
        await broker.lead()
        await scenario(broker)

    with_cluster(run)


def test_a_producer_goes_through_two_transactions() -> None:
    async def scenario(broker: Coordinated) -> None:
        error, producer = await broker.init()
        assert (error, producer.epoch) == (ErrorCode.NONE, 0)
        assert await broker.add(producer) == [[ErrorCode.NONE]]
        assert await broker.end(producer, commit=True, version=4) == (ErrorCode.NONE, Producer(-1, -1))
        await settle()
        assert await broker.add(producer) == [[ErrorCode.NONE]]
        then = Producer(producer.producer_id, 1)
        assert await broker.end(producer, commit=False) == (ErrorCode.NONE, then)
        await settle()
        assert await broker.end(producer, commit=False) == (ErrorCode.NONE, then)

    coordinated(scenario)


def test_who_does_not_lead_is_no_coordinator() -> None:
    async def run(cluster: SmallCluster) -> None:
        broker = Coordinated(cluster)
        await broker.start()
        assert (await broker.init())[0] is ErrorCode.NOT_COORDINATOR
        assert await broker.add(Producer(0, 0)) == [[ErrorCode.NOT_COORDINATOR]]
        assert (await broker.end(Producer(0, 0), commit=True))[0] is ErrorCode.NOT_COORDINATOR

    with_cluster(run)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_init_that_makes_no_sense(fields: dict[str, Any], expected: ErrorCode) -> None:
    async def scenario(broker: Coordinated) -> None:
        assert await broker.init(**fields) == (expected, Producer(-1, -1))

    coordinated(scenario)


def test_older_clients_hear_of_their_fencing_in_the_old_words() -> None:
    async def scenario(broker: Coordinated) -> None:
        _, old = await broker.init()
        await broker.init()
        has = {"producer_id": old.producer_id, "producer_epoch": 0}
        assert (await broker.init(version=3, **has))[0] is ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await broker.init(version=4, **has))[0] is ErrorCode.PRODUCER_FENCED
        assert await broker.add(old, version=1) == [[ErrorCode.INVALID_PRODUCER_EPOCH]]
        assert await broker.add(old, version=2) == [[ErrorCode.PRODUCER_FENCED]]
        assert (await broker.end(old, commit=True, version=1))[0] is ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await broker.end(old, commit=True, version=2))[0] is ErrorCode.PRODUCER_FENCED
        for version, expected in ((1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)):
            request = AddOffsetsToTxnRequest(
                transactional_id=ID, producer_id=old.producer_id, producer_epoch=0, group_id="g"
            )
            assert (await broker.ask(add_offsets_to_txn, version, request)).error_code == expected

    coordinated(scenario)


def test_one_partition_that_can_not_be_added_keeps_the_others_out() -> None:
    async def scenario(broker: Coordinated) -> None:
        _, producer = await broker.init()
        unknown = await broker.add(
            producer, Topic(name="payments", partitions=[0, 7]), Topic(name="nowhere", partitions=[0])
        )
        assert unknown == [
            [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
            [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        ]
        internal = await broker.add(producer, Topic(name="__transaction_state", partitions=[0]))
        assert internal == [[ErrorCode.TOPIC_AUTHORIZATION_FAILED]]
        answer = await broker.ask(describe_transactions, 0, DescribeTransactionsRequest(transactional_ids=[ID]))
        assert answer.transaction_states[0].transaction_state == "Empty"

    coordinated(scenario)


def test_brokers_add_and_verify_for_several_producers_at_once() -> None:
    async def scenario(broker: Coordinated) -> None:
        _, one = await broker.init("one")
        _, two = await broker.init("two")
        await broker.add(two, name="two")

        def asked(name: str, producer: Producer, *, verify: bool, partitions: list[int]) -> OfBroker:
            topics = [Topic(name="payments", partitions=partitions)]
            return OfBroker(
                transactional_id=name,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                verify_only=verify,
                topics=topics,
            )

        answer = await broker.add_for_clients(
            asked("one", one, verify=False, partitions=[1]),
            asked("two", two, verify=True, partitions=[0, 1]),
            asked("", two, verify=True, partitions=[0]),
            asked("unheard", two, verify=True, partitions=[0]),
        )
        assert answer.error_code == 0
        assert {each.transactional_id: codes(each.topic_results) for each in answer.results_by_transaction} == {
            "one": [[ErrorCode.NONE]],
            "two": [[ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]],
            "": [[ErrorCode.INVALID_REQUEST]],
            "unheard": [[ErrorCode.INVALID_PRODUCER_ID_MAPPING]],
        }

    coordinated(scenario)


def test_offsets_are_added_as_the_partition_of_their_group() -> None:
    async def scenario(broker: Coordinated) -> None:
        _, producer = await broker.init()
        request = AddOffsetsToTxnRequest(transactional_id=ID, producer_id=producer.producer_id, group_id="readers")
        assert (await broker.ask(add_offsets_to_txn, 4, request)).error_code == 0
        answer = await broker.ask(describe_transactions, 0, DescribeTransactionsRequest(transactional_ids=[ID]))
        (state,) = answer.transaction_states
        assert [(topic.topic, topic.partitions) for topic in state.topics] == [("__consumer_offsets", [28])]

    coordinated(scenario)


def test_describe_answers_for_each_id_by_itself() -> None:
    async def scenario(broker: Coordinated) -> None:
        await broker.init()
        answer = await broker.ask(
            describe_transactions, 0, DescribeTransactionsRequest(transactional_ids=[ID, "", "unheard"])
        )
        assert [(each.transactional_id, each.error_code) for each in answer.transaction_states] == [
            (ID, 0),
            ("", ErrorCode.INVALID_REQUEST),
            ("unheard", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        ]

    coordinated(scenario)


def test_list_with_filters() -> None:
    async def scenario(broker: Coordinated) -> None:
        for name in ("a-1", "a-2", "b-1"):
            _, producer = await broker.init(name)
        await broker.add(producer, name="b-1")

        async def listed(version: int = 2, **filters: Any) -> tuple[int, list[str], list[str]]:
            answer = await broker.ask(list_transactions, version, ListTransactionsRequest(**filters))
            names = sorted(each.transactional_id for each in answer.transaction_states)
            return answer.error_code, answer.unknown_state_filters, names

        assert await listed(0) == (0, [], ["a-1", "a-2", "b-1"])
        assert await listed(0, state_filters=["Ongoing", "Foo"]) == (0, ["Foo"], ["b-1"])
        assert await listed(0, producer_id_filters=[producer.producer_id]) == (0, [], ["b-1"])
        assert await listed(1, duration_filter=60_000) == (0, [], ["a-1", "a-2"])
        assert await listed(transactional_id_pattern="a-.*") == (0, [], ["a-1", "a-2"])
        assert await listed(transactional_id_pattern="a-") == (0, [], [])
        assert await listed(transactional_id_pattern="") == (0, [], ["a-1", "a-2", "b-1"])
        assert await listed(transactional_id_pattern="(") == (ErrorCode.INVALID_REGULAR_EXPRESSION, [], [])
        broker.transactions.runtime.resign(0)
        broker.transactions.runtime.lead(0, 1)
        assert (await listed())[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    coordinated(scenario)


def test_what_may_not_be_done() -> None:
    everything = Rules(
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, ID),
        (Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "hidden"),
        (Operation.WRITE, ResourceType.TOPIC, "payments"),
        (Operation.READ, ResourceType.GROUP, "readers"),
        (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"),
    )

    async def scenario(broker: Coordinated) -> None:
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await broker.init())[0] is refused
        assert await broker.add(Producer(0, 0)) == [[refused]]
        assert (await broker.end(Producer(0, 0), commit=True))[0] is refused
        request = AddOffsetsToTxnRequest(transactional_id=ID, group_id="readers")
        assert (await broker.ask(add_offsets_to_txn, 4, request)).error_code == refused
        _, other = await broker.init("other")
        assert await broker.add(other, name="other") == [[ErrorCode.TOPIC_AUTHORIZATION_FAILED]]
        request = AddOffsetsToTxnRequest(transactional_id="other", group_id="readers")
        assert (await broker.ask(add_offsets_to_txn, 4, request)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        answer = await broker.add_for_clients(OfBroker(transactional_id="other"))
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await broker.init("hidden")
        listed = await broker.ask(list_transactions, 2, ListTransactionsRequest())
        assert [each.transactional_id for each in listed.transaction_states] == ["other"]
        described = await broker.ask(
            describe_transactions, 0, DescribeTransactionsRequest(transactional_ids=["hidden"])
        )
        assert described.transaction_states[0].error_code == refused

    coordinated(scenario, authorizer=everything)


def test_the_produce_path_verifies_and_adds() -> None:
    async def scenario(broker: Coordinated) -> None:
        _, producer = await broker.init()
        verifier = broker.transactions.verifier
        tp = TopicPartition("payments", 1)
        assert await verifier.verify(ID, producer, [tp]) == {tp: ErrorCode.TRANSACTION_ABORTABLE}
        assert await verifier.add(ID, producer, [tp]) == {tp: ErrorCode.NONE}
        assert await verifier.verify(ID, producer, [tp]) == {tp: ErrorCode.NONE}
        zombie = Producer(producer.producer_id, 9)
        assert await verifier.add(ID, zombie, [tp]) == {tp: ErrorCode.PRODUCER_FENCED}
        for partition in range(50):
            broker.transactions.runtime.resign(partition)
        assert await verifier.verify(ID, producer, [tp]) == {tp: ErrorCode.NOT_COORDINATOR}

    coordinated(scenario)


@pytest.mark.parametrize(
    ("code", "before_11", "in_11", "since_12"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE", "TRANSACTION_ABORTABLE"),
        (ErrorCode.PRODUCER_FENCED, "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_EPOCH"),
        (ErrorCode.CONCURRENT_TRANSACTIONS, "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS", "CONCURRENT_TRANSACTIONS"),
        (ErrorCode.NOT_COORDINATOR, "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS"),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, *["INVALID_PRODUCER_ID_MAPPING"] * 3),
    ],
)
def test_producers_hear_codes_that_they_know(code: ErrorCode, before_11: str, in_11: str, since_12: str) -> None:
    assert [produce_error(code, version).name for version in (10, 11, 12)] == [before_11, in_11, since_12]


def test_offset_commits_before_version_4_do_not_know_abortable() -> None:
    assert verification_error(ErrorCode.TRANSACTION_ABORTABLE, knows_abortable=False) is ErrorCode.INVALID_TXN_STATE
    assert verification_error(ErrorCode.TRANSACTION_ABORTABLE, knows_abortable=True) is ErrorCode.TRANSACTION_ABORTABLE


def test_an_id_that_is_not_at_hand_is_fetched_for_the_next_time() -> None:
    async def scenario(broker: Coordinated) -> None:
        ids = broker.cluster.metadata_writer.producer_ids
        while ids.take_nowait() is not None:
            pass
        assert broker.transactions.take_nowait() is None
        await ids.have_some()
        assert broker.transactions.take_nowait() is not None

    coordinated(scenario)
