"""Transactions, as an administrator asks for them: which are open, what they hold, and an end for those left behind.

Looking is repeated until time is up. ``abort`` does what the producer's next incarnation would: the coordinator ends
what is open and fences the old producer. ``abort_hanging`` is for what no coordinator knows of any more (KIP-664): it
has the partition's leader write the marker.
"""

from __future__ import annotations

from typing import NamedTuple

from headpond.client.client import Client
from headpond.client.coordinators import Coordinated, ask_all_brokers, ask_coordinator, find_coordinator
from headpond.client.errors import ClientError, refusal
from headpond.client.routing import ask_leaders, topics_of
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.describe_producers import DescribeProducersRequest
from headpond.protocol.schema.describe_transactions import DescribeTransactionsRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.list_transactions import ListTransactionsRequest
from headpond.protocol.schema.write_txn_markers import WriteTxnMarkersRequest

BEING_ENDED = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS})


class ListedTransaction(NamedTuple):
    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int
    """-1: none is open."""
    partitions: list[TopicPartition]

    @property
    def is_open(self) -> bool:
        return self.state == "Ongoing"


class OpenProducer(NamedTuple):
    """A producer with an open transaction in a partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int


class Transactions:
    def __init__(self, client: Client, *, timeout_s: float | None = None) -> None:
        self.client = client
        self.timeout_s = client.timeout_s if timeout_s is None else timeout_s

    async def all(self) -> list[ListedTransaction]:
        """The transactional ids of all brokers, by name."""
        answers = await ask_all_brokers(self.client, ListTransactionsRequest(), "the transactions", self.timeout_s)
        found = [
            ListedTransaction(one.transactional_id, node_id, one.producer_id, one.transaction_state)
            for node_id, answer in answers.items()
            for one in answer.transaction_states
        ]
        return sorted(found)

    async def describe(self, transactional_id: str) -> TransactionDescription | None:
        """None: there is no such id."""
        response = await ask_coordinator(
            self.client,
            Coordinated("transaction", transactional_id),
            DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            lambda answer: [one.error_code for one in answer.transaction_states],
            self.timeout_s,
            may_repeat=True,
        )
        (one,) = response.transaction_states
        if one.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        if one.error_code:
            raise refusal(one.error_code, f"transaction {transactional_id}")
        partitions = sorted(TopicPartition(topic.topic, number) for topic in one.topics for number in topic.partitions)
        return TransactionDescription(
            transactional_id,
            await find_coordinator(self.client, "transaction", transactional_id, self.timeout_s),
            one.producer_id,
            one.producer_epoch,
            one.transaction_state,
            one.transaction_timeout_ms,
            one.transaction_start_time_ms,
            partitions,
        )

    async def abort(self, transactional_id: str, timeout_ms: int) -> None:
        """Returns when it is over. ``timeout_ms``: what the id's time-out is from now on."""
        response = await ask_coordinator(
            self.client,
            Coordinated("transaction", transactional_id),
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms),
            lambda answer: [answer.error_code],
            self.timeout_s,
            may_repeat=True,
            also_retried=BEING_ENDED,
        )
        if response.error_code:
            raise refusal(response.error_code, f"transaction {transactional_id}")

    async def open_producers(self, tp: TopicPartition) -> list[OpenProducer]:
        """Whose transactions a partition holds open, as its leader knows them."""

        async def ask(
            node_id: int, part: dict[TopicPartition, None]
        ) -> dict[TopicPartition, list[OpenProducer] | ClientError]:
            topics = [
                DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[each.partition for each in tps])
                for name, tps in topics_of(part).items()
            ]
            response = await self.client.request(DescribeProducersRequest(topics=topics), node_id, self.timeout_s)
            answers: dict[TopicPartition, list[OpenProducer] | ClientError] = {}
            for topic in response.topics:
                for one in topic.partitions:
                    place = TopicPartition(topic.name, one.partition_index)
                    if one.error_code:
                        answers[place] = refusal(one.error_code, f"producers of {place}", one.error_message)
                        continue
                    answers[place] = [
                        OpenProducer(
                            each.producer_id,
                            each.producer_epoch,
                            each.coordinator_epoch,
                            each.current_txn_start_offset,
                        )
                        for each in one.active_producers
                        if each.current_txn_start_offset >= 0
                    ]
            return answers

        result = (await ask_leaders(self.client, {tp: None}, ask, self.timeout_s))[tp]
        if isinstance(result, ClientError):
            raise result
        return result

    async def abort_hanging(self, tp: TopicPartition, producer: OpenProducer) -> None:
        """Have the leader write an abort marker, whatever the coordinator thinks of it."""
        leader = self.client.cluster.leader(tp)
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            topics=[topic],
            coordinator_epoch=max(0, producer.coordinator_epoch),
        )
        response = await self.client.request(
            WriteTxnMarkersRequest(markers=[marker]), None if leader is None else leader.leader, self.timeout_s
        )
        for code in [
            one.error_code for each in response.markers for topic_ in each.topics for one in topic_.partitions
        ]:
            if code:
                raise refusal(code, f"the marker for {tp}")
