"""What readers see of transactions: read_committed stops at the last stable offset, is told which transactions of what
it gets were aborted, and does not sleep through the end of one."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest

from headpond.protocol.schema.describe_producers import DescribeProducersRequest
from headpond.protocol.schema.end_txn import EndTxnRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from headpond.protocol.schema.produce import ProduceRequest
from headpond.protocol.schema.write_txn_markers import WriteTxnMarkersRequest
from support.batches import Rec, build
from support.verbs import Topic, batches, fetch, fetch_partition, fetch_request
from support.wire import Wire

TRANSACTIONAL = 0x10
READ_COMMITTED = 1
LATEST = -1
LONGER_THAN_THE_TEST_MS = 20_000


class Producer:
    """A transactional producer of the second version: each transaction has its own epoch."""

    def __init__(self, wire: Wire, topic: Topic) -> None:
        self.wire, self.topic = wire, topic
        self.name = f"shop-{uuid.uuid4()}"
        self.sequence = 0
        response = until_served(
            lambda: wire.call(FindCoordinatorRequest(key_type=1, coordinator_keys=[self.name]), 4).coordinators[0]
        )
        assert response.error_code == 0
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        started = until_served(lambda: wire.call(request, 5))
        assert started.error_code == 0
        self.id, self.epoch = started.producer_id, started.producer_epoch

    def send(self, value: bytes = b"x", *, records: int = 1) -> int:
        batch = build(
            [Rec(value)] * records,
            attributes=TRANSACTIONAL,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        data = ProduceRequest.TopicProduceData(
            name=self.topic.name, partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)]
        )
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=10_000, topic_data=[data])
        row = until_served(lambda: self.wire.call(request, 12).responses[0].partition_responses[0])
        assert row.error_code == 0, row.error_code
        self.sequence += records
        return int(row.base_offset)

    def end(self, *, is_commit: bool) -> None:
        """Returns when the outcome is durable; its markers follow."""
        response = self.wire.call(
            EndTxnRequest(
                transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=is_commit
            ),
            5,
        )
        assert response.error_code == 0
        self.id, self.epoch, self.sequence = response.producer_id, response.producer_epoch, 0

    def end_and_see(self, *, is_commit: bool) -> None:
        before = read_committed(self.wire, self.topic, 0).high_watermark
        self.end(is_commit=is_commit)
        deadline = time.monotonic() + 20
        while (row := read_committed(self.wire, self.topic, 0)).high_watermark == before or self.describe():
            assert time.monotonic() < deadline, row
            time.sleep(0.01)

    def describe(self) -> bool:
        """Whether it has a transaction open."""
        return any(
            row.producer_id == self.id and row.current_txn_start_offset >= 0 for row in described(self.topic, self.wire)
        )


def until_served(ask: Any) -> Any:
    """A coordinator that loads, or whose topic is being made, is asked again."""
    deadline = time.monotonic() + 20
    while (answer := ask()).error_code in (14, 15, 16, 19, 51) and time.monotonic() < deadline:
        time.sleep(0.02)
    return answer


def described(topic: Topic, wire: Wire) -> list[Any]:
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name=topic.name, partition_indexes=[0])]
    )
    return list(wire.call(request, 0).topics[0].partitions[0].active_producers)


def read_committed(wire: Wire, topic: Topic, offset: int, **fields: Any) -> Any:
    return fetch(wire, topic, offset, isolation_level=READ_COMMITTED, **fields)


def latest(wire: Wire, topic: Topic, isolation_level: int) -> int:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    named = ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=[wanted])
    response = wire.call(ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[named]), 7)
    return int(response.topics[0].partitions[0].offset)


@pytest.fixture
def producer(wire: Wire, topic: Topic) -> Producer:
    return Producer(wire, topic)


def test_read_committed_ends_where_the_oldest_open_transaction_begins(
    wire: Wire, topic: Topic, producer: Producer
) -> None:
    producer.send()
    producer.end_and_see(is_commit=True)
    assert producer.send(records=3) == 2
    row = read_committed(wire, topic, 0)
    assert (row.last_stable_offset, row.high_watermark, [b.base_offset for b in batches(row)]) == (2, 5, [0, 1])
    assert [b.base_offset for b in batches(fetch(wire, topic))] == [0, 1, 2]
    assert read_committed(wire, topic, 2).records == b""
    assert latest(wire, topic, READ_COMMITTED) == 2 and latest(wire, topic, 0) == 5
    producer.end_and_see(is_commit=True)
    assert read_committed(wire, topic, 2).last_stable_offset == 6


def test_only_aborted_transactions_of_the_data_are_listed(wire: Wire, topic: Topic, producer: Producer) -> None:
    first = producer.id
    for is_commit in (False, True, False):
        producer.send()
        producer.end_and_see(is_commit=is_commit)
    row = read_committed(wire, topic, 0)
    assert [(each.producer_id, each.first_offset) for each in row.aborted_transactions] == [(first, 0), (first, 4)]
    assert [each.first_offset for each in read_committed(wire, topic, 1).aborted_transactions] == [0, 4]
    assert [each.first_offset for each in read_committed(wire, topic, 2).aborted_transactions] == [4]
    assert fetch(wire, topic).aborted_transactions is None


def test_a_fetch_without_a_wait_is_answered_at_once_under_an_open_transaction(
    wire: Wire, topic: Topic, producer: Producer
) -> None:
    producer.send()
    started = time.monotonic()
    for _ in range(20):
        assert read_committed(wire, topic, 0, max_wait_ms=0).records == b""
    assert time.monotonic() - started < 10


def test_a_parked_reader_that_wants_many_bytes_wakes_when_the_transaction_ends(
    wire: Wire, topic: Topic, producer: Producer, bootstrap: str
) -> None:
    producer.send(b"x" * 5_000)
    with Wire(bootstrap) as reader:
        reader.send(
            fetch_request(
                {topic: [fetch_partition()]},
                version=17,
                max_wait_ms=LONGER_THAN_THE_TEST_MS,
                min_bytes=4_000,
                isolation_level=READ_COMMITTED,
            ),
            17,
        )
        while read_committed(wire, topic, 0).high_watermark < 1:
            pass
        started = time.monotonic()
        producer.end(is_commit=True)
        _, response = reader.receive()
    assert [b.base_offset for b in batches(response.responses[0].partitions[0])][:1] == [0]
    assert time.monotonic() - started < LONGER_THAN_THE_TEST_MS / 2_000


def test_an_open_transaction_is_described_with_its_start(wire: Wire, topic: Topic, producer: Producer) -> None:
    producer.send()
    producer.end_and_see(is_commit=True)
    producer.send()
    (row,) = described(topic, wire)
    assert (row.producer_id, row.producer_epoch, row.last_sequence) == (producer.id, producer.epoch, 0)
    assert (row.current_txn_start_offset, row.coordinator_epoch >= 0) == (2, True)


@pytest.mark.parametrize("version", [1, 2])
def test_markers_can_be_written_by_hand_to_end_what_hangs(
    wire: Wire, topic: Topic, producer: Producer, version: int
) -> None:
    producer.send()
    marked = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic.name, partition_indexes=[0, 99])
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch + 1,
        transaction_result=False,
        topics=[marked],
        coordinator_epoch=3,
        transaction_version=2 if version >= 2 else 0,
    )
    (row,) = wire.call(WriteTxnMarkersRequest(markers=[marker]), version).markers
    assert {each.partition_index: each.error_code for each in row.topics[0].partitions} == {0: 0, 99: 3}
    answer = read_committed(wire, topic, 0)
    assert answer.last_stable_offset == answer.high_watermark == 2
    assert [each.first_offset for each in answer.aborted_transactions] == [0]
