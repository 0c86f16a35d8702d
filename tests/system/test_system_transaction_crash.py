"""kill -9 in the middle of the end of a transaction: whatever of it had reached the disk, it ends as it was decided, on
all partitions, and its producer goes on.

The moments are made: the broker is killed after the end, and what it wrote last is cut off again, as if the kill had
come in between. A kill leaves a beginning of each log, and what one log holds may be known to another one only later.

Both versions of transactions: librdkafka's producer adds partitions and offsets beforehand (version 1), ours on the
wire does not, and gets a new epoch with every end (version 2).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headpond.protocol.schema.describe_transactions import DescribeTransactionsRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from support.batches import Batch, split
from support.broker import BrokerProcess
from support.producer_v2 import PatientWire, ProducerV2
from support.variants import kinds, rare
from support.verbs import LATEST, Topic, create_topic, end_offset, fetch
from support.waiting import eventually
from support.wire import Wire

ID, GROUP, SOURCE, TARGET = "biller", "billing", "orders", "invoices"
WAIT_S = 30.0
CONTROL = 0x20
READ_COMMITTED = 1
COMPLETE = ("CompleteCommit", "CompleteAbort")

# What had reached the disk, from the decision on: on how many of the logs that get a marker it is.
NOTHING_BUT_THE_DECISION, ONE_MARKER, TWO_MARKERS, ALL_MARKERS = 0, 1, 2, 3
ENDS = list(itertools.product(("v1", "v2"), range(ALL_MARKERS + 1), ("commit", "abort")))
# Each version, each end and each number of markers.
ORDINARY_ENDS = [
    ("v2", NOTHING_BUT_THE_DECISION, "commit"),
    ("v1", ONE_MARKER, "abort"),
    ("v2", TWO_MARKERS, "abort"),
    ("v1", ALL_MARKERS, "commit"),
]


class Biller(Protocol):
    """A transactional producer that has its id."""

    def bill(self, text: str, offset: int, *, is_commit: bool) -> None:
        """One transaction: a record to each partition, and an offset."""


class BillerV1:
    def __init__(self, bootstrap: str, target: Topic) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": ID, "metadata.recovery.strategy": "none"}
        )
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
        self._producer.init_transactions(WAIT_S)

    def bill(self, text: str, offset: int, *, is_commit: bool) -> None:
        self._producer.begin_transaction()
        for partition in range(2):
            self._producer.produce(TARGET, text, partition=partition)
        offsets = [TopicPartition(SOURCE, 0, offset)]
        self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), WAIT_S)
        self._producer.flush(WAIT_S)
        if is_commit:
            self._producer.commit_transaction(WAIT_S)
        else:
            self._producer.abort_transaction(WAIT_S)


class BillerV2:
    def __init__(self, bootstrap: str, target: Topic) -> None:
        self._target = target
        self._producer = ProducerV2(PatientWire(bootstrap), ID)
        self._producer.init()

    def bill(self, text: str, offset: int, *, is_commit: bool) -> None:
        self._producer.produce(self._target, {0: [text.encode()], 1: [text.encode()]})
        self._producer.commit_offsets(GROUP, SOURCE, {0: offset})
        self._producer.end(is_commit=is_commit)


class Bank:
    """A broker, and a producer in the middle of its second transaction."""

    def __init__(self, broker: BrokerProcess, make_biller: Callable[[str, Topic], Biller]) -> None:
        self.broker = broker
        with Wire(broker.bootstrap_servers) as wire:
            create_topic(wire, SOURCE)
            self.target = create_topic(wire, TARGET, partitions=2)
            find = FindCoordinatorRequest(coordinator_keys=[GROUP])  # the offsets have a home
            eventually(lambda: wire.call(find, 4).coordinators[0].error_code == 0)
        self._make_biller = make_biller
        self.employ()

    def employ(self) -> None:
        """A new producer, which fences the one before."""
        self._biller = self._make_biller(self.broker.bootstrap_servers, self.target)

    def transact(self, text: str, offset: int, *, is_commit: bool) -> None:
        self._biller.bill(text, offset, is_commit=is_commit)
        eventually(self.is_complete)

    def is_complete(self) -> bool:
        """And nothing is open any more."""
        with Wire(self.broker.bootstrap_servers) as wire:
            (found,) = wire.call(DescribeTransactionsRequest(transactional_ids=[ID]), 0).transaction_states
            if found.error_code or found.transaction_state not in COMPLETE:
                return False
            return all(
                stable_end(wire, self.target, at) == end_offset(wire, self.target, partition=at) for at in (0, 1)
            )

    # --- what is seen of it

    def values(self, partition: int) -> list[bytes]:
        """What a read_committed consumer sees."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": "auditor",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            }
        )
        consumer.assign([TopicPartition(TARGET, partition, 0)])
        found = []
        while (message := consumer.poll(WAIT_S)) is not None and not message.error():
            found.append(message.value())
        consumer.close()
        return found

    def offset(self) -> int:
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap_servers, "group.id": GROUP})
        (found,) = consumer.committed([TopicPartition(SOURCE, 0)], timeout=WAIT_S)
        consumer.close()
        return int(found.offset)

    # --- what is cut

    def log_of(self, topic: str) -> list[Path]:
        """The log files of the topic's partitions that hold anything."""
        files = sorted(self.broker.data_dir.rglob(f"{topic}-*/*.log"))
        return [file for file in files if file.stat().st_size]

    def cut_last(self, file: Path, is_expected: Callable[[Batch], bool]) -> None:
        batches = list(split(file.read_bytes()))
        assert is_expected(batches[-1]), batches[-1]
        os.truncate(file, sum(len(batch.data) for batch in batches[:-1]))

    def cut_back_to(self, marker_count: int) -> None:
        """The broker is down, the last transaction was complete: now it is decided, and so many markers are there."""
        (states,) = self.log_of("__transaction_state")
        self.cut_last(states, lambda batch: not batch.attributes & CONTROL)
        marked = [*self.log_of(TARGET), *self.log_of("__consumer_offsets")]
        assert len(marked) == 3
        for file in marked[marker_count:]:
            self.cut_last(file, lambda batch: bool(batch.attributes & CONTROL))
        # A kill leaves no checkpoint that is ahead of its log; ours were written for the longer ones.
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (self.broker.data_dir / name).unlink(missing_ok=True)


def stable_end(wire: Wire, topic: Topic, partition: int) -> int:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    entry = ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=[wanted])
    request = ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=[entry])
    answer: Any = wire.call(request, 9).topics[0].partitions[0]
    return int(answer.offset)


@pytest.fixture
def bank(make_broker: Callable[..., BrokerProcess], request: pytest.FixtureRequest) -> Bank:
    settings = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    return Bank(make_broker(settings=settings).start(), {"v1": BillerV1, "v2": BillerV2}[request.param])


@pytest.mark.parametrize(
    ("bank", "marker_count", "end"), [end if end in ORDINARY_ENDS else rare(*end) for end in ENDS], indirect=["bank"]
)
def test_killed_between_the_decision_and_its_last_marker_the_transaction_ends_as_decided(
    bank: Bank, marker_count: int, end: str
) -> None:
    is_commit = end == "commit"
    bank.transact("first", 1, is_commit=True)
    bank.transact("second", 2, is_commit=is_commit)
    bank.broker.kill()
    bank.cut_back_to(marker_count)
    bank.broker.start()
    bank.transact("third", 3, is_commit=False)  # the producer knows nothing of all this
    expected = [b"first", b"second"] if is_commit else [b"first"]
    assert [bank.values(0), bank.values(1)] == [expected, expected]
    assert bank.offset() == (2 if is_commit else 1)
    bank.broker.restart(kill=True)
    assert [bank.values(0), bank.values(1), bank.offset()] == [expected, expected, 2 if is_commit else 1]


@pytest.mark.parametrize("bank", kinds(["v1", "v2"], ordinary=["v2"]), indirect=True)
def test_killed_before_the_decision_was_stored_the_transaction_is_open_and_its_producers_successor_aborts_it(
    bank: Bank,
) -> None:
    bank.transact("first", 1, is_commit=True)
    bank.transact("second", 2, is_commit=True)
    bank.broker.kill()
    bank.cut_back_to(NOTHING_BUT_THE_DECISION)
    (states,) = bank.log_of("__transaction_state")
    bank.cut_last(states, lambda batch: not batch.attributes & CONTROL)  # and not even that
    bank.broker.start()
    assert [bank.values(0), bank.values(1)] == [[b"first"]] * 2
    with Wire(bank.broker.bootstrap_servers) as wire:
        eventually(lambda: describe(wire) == "Ongoing")
        assert stable_end(wire, bank.target, 0) < end_offset(wire, bank.target)
        assert fetch(wire, bank.target, isolation_level=READ_COMMITTED).last_stable_offset == 2
    bank.employ()
    eventually(lambda: bank.offset() == 1)
    bank.transact("third", 3, is_commit=True)
    assert [bank.values(0), bank.values(1), bank.offset()] == [[b"first", b"third"], [b"first", b"third"], 3]


def describe(wire: Wire) -> str:
    state: str = (
        wire.call(DescribeTransactionsRequest(transactional_ids=[ID]), 0).transaction_states[0].transaction_state
    )
    return state
