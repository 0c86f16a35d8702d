"""A transactional producer as KIP-890's second half wants it, on the wire: nothing is added beforehand, the first batch
or offset begins the transaction, and its end gives the producer the epoch of the next one.

It repeats a step until it is answered, on a new connection when the broker went away in between: each means the same
when it is done twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from headpond.protocol.schema.end_txn import EndTxnRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.produce import ProduceRequest
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest
from support.batches import build
from support.verbs import Topic
from support.wire import ConnectionClosed, Wire

PRODUCE, OFFSET_COMMIT, END, INIT = 13, 5, 5, 5
TRANSACTIONAL = 0x10
UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER, NOT_ENOUGH_REPLICAS, UNKNOWN_TOPIC_ID = 3, 6, 19, 100
LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS = 14, 15, 16, 51
RETRIABLE = {
    *(UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER, NOT_ENOUGH_REPLICAS, UNKNOWN_TOPIC_ID),
    *(LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS),
}
PATIENCE_S = 60.0


class Refused(Exception):
    """Asking again would not help."""

    def __init__(self, request: Any, codes: set[int]) -> None:
        super().__init__(f"{type(request).__name__}: {sorted(codes)}")
        self.codes = codes


class PatientWire:
    """One connection after the other. ``losing``: this part of the answers never arrives; of half of them nobody even
    waits until they are there, so that the same request may come again while the first is worked on."""

    def __init__(self, bootstrap: str, *, losing: float = 0.0) -> None:
        self._bootstrap = bootstrap
        self._losing = losing
        self._wire: Wire | None = None

    def call(self, request: Any, version: int) -> Any:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._exchange(request, version)
            except (OSError, ConnectionClosed):
                self.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def settle(self, request: Any, version: int, codes_of: Any) -> Any:
        """The answer without an error, sooner or later; ``codes_of`` finds the codes in one. ``Refused`` otherwise."""
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = self.call(request, version)
            codes = set(codes_of(answer)) - {0}
            if not codes:
                return answer
            if codes - RETRIABLE or time.monotonic() > until:
                raise Refused(request, codes)
            time.sleep(0.02)

    def _exchange(self, request: Any, version: int) -> Any:
        if self._wire is None:
            self._wire = Wire(self._bootstrap)
        self._wire.send(request, version)
        is_lost = random.random() < self._losing
        if is_lost and random.random() < 0.5:
            raise ConnectionClosed("on purpose")
        answer = self._wire.receive()[1]
        if is_lost:
            raise ConnectionClosed("on purpose")
        return answer

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


class ProducerV2:
    def __init__(self, wire: PatientWire, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        self._wire = wire
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._producer_id = self._epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def init(self) -> None:
        """Fences whoever had the id, and ends what it left open."""
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self._id])
        self._wire.settle(find, 4, lambda found: [each.error_code for each in found.coordinators])
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=self._timeout_ms)
        self._became(self._wire.settle(request, INIT, lambda answer: [answer.error_code]))

    def produce(self, topic: Topic, values: Mapping[int, Sequence[bytes]]) -> None:
        """A batch to each partition, in one request."""
        rows = [
            ProduceRequest.PartitionProduceData(
                partition,
                build(
                    batch,
                    attributes=TRANSACTIONAL,
                    producer_id=self._producer_id,
                    producer_epoch=self._epoch,
                    base_sequence=self._sequences.get((topic.name, partition), 0),
                ),
            )
            for partition, batch in values.items()
        ]
        entry = ProduceRequest.TopicProduceData(topic_id=topic.id, partition_data=rows)
        request = ProduceRequest(transactional_id=self._id, acks=-1, timeout_ms=30_000, topic_data=[entry])
        self._wire.settle(
            request, PRODUCE, lambda answer: [each.error_code for each in answer.responses[0].partition_responses]
        )
        for partition, batch in values.items():
            at = topic.name, partition
            self._sequences[at] = self._sequences.get(at, 0) + len(batch)

    def commit_offsets(
        self, group: str, topic: str, offsets: Mapping[int, int], *, member_id: str = "", epoch: int = -1
    ) -> None:
        rows = [
            TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition, offset)
            for partition, offset in offsets.items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            generation_id=epoch,
            member_id=member_id,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(topic, rows)],
        )
        self._wire.settle(
            request, OFFSET_COMMIT, lambda answer: [each.error_code for each in answer.topics[0].partitions]
        )

    def end(self, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=is_commit,
        )
        before = self._producer_id, self._epoch
        self._became(self._wire.settle(request, END, lambda answer: [answer.error_code]))
        assert (self._producer_id, self._epoch) > before, "the end of a transaction raises the epoch"

    def _became(self, answer: Any) -> None:
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences = {}
