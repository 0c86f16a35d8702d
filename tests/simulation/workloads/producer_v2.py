"""A transactional producer as KIP-890's second half wants it, on our client: nothing is added beforehand, the first
batch or offset begins the transaction, and its end gives the producer the epoch of the next one.

It repeats a step as real clients do, with the same sequence numbers, until it is answered or ``patience_s`` is over,
and knows of each refusal whether it is certain: the request was sent once, and nothing else can have come of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headpond.client import Client, ClientError
from headpond.client.connection import NotSent
from headpond.client.coordinators import Kind, find_coordinator
from headpond.client.errors import RETRIABLE, BrokerUnreachable
from headpond.model import ErrorCode, TopicPartition
from headpond.model.ids import parse_id
from headpond.protocol.records.producer import patch_producer
from headpond.protocol.schema.end_txn import EndTxnRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.produce import ProduceRequest
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest
from headpond.protocol.types import Message
from simulation.history import Place

RETRY_S = 0.05
ATTEMPT_S = 2.0
"""After which a step is asked for again, though its first request may be carried out still."""
REQUEST_TIMEOUT_MS = 1_500
WRITTEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


class StepFailed(Exception):
    """``is_certain``: it has no effect, and will have none."""

    def __init__(self, code: int, *, is_certain: bool) -> None:
        super().__init__(ErrorCode(code).name)
        self.code = code
        self.is_certain = is_certain


class Written(NamedTuple):
    """``offset``: of the first record; -1: the broker knew the batch, and not where."""

    offset: int


class ProducerV2:
    def __init__(self, client: Client, transactional_id: str, *, timeout_ms: int, patience_s: float) -> None:
        self.producer_id = self.epoch = -1
        self._client = client
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._patience_s = patience_s
        self._sequences: dict[TopicPartition, int] = {}

    async def init(self) -> None:
        """Fences whoever had the id, and ends what it left open."""
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=self._timeout_ms)
        self._became(await self._settle("transaction", self._id, request, lambda answer: [answer.error_code]))

    async def commit_offset(self, group: str, tp: TopicPartition, offset: int) -> None:
        row = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(tp.partition, offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(tp.topic, [row])],
        )
        await self._settle(
            "group", group, request, lambda answer: [each.error_code for each in answer.topics[0].partitions]
        )

    async def end(self, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        before = self.producer_id, self.epoch
        self._became(await self._settle("transaction", self._id, request, lambda answer: [answer.error_code]))
        assert (self.producer_id, self.epoch) > before, "the end of a transaction raises the epoch"

    def _became(self, answer: Any) -> None:
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences = {}

    # --- batches

    async def produce(self, batches: Mapping[Place, tuple[bytearray, int]]) -> dict[Place, Written | StepFailed]:
        """A batch, and how many records it has, to each partition. Those without an answer are sent again, together."""
        waiting: dict[Place, bytearray] = {}
        for place, (batch, count) in batches.items():
            at = TopicPartition(place.topic, place.partition)
            sequence = self._sequences.get(at, 0)
            self._sequences[at] = sequence + count
            patch_producer(
                batch,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
            waiting[place] = batch
        outcomes: dict[Place, Written | StepFailed] = {}
        attempts = dict.fromkeys(batches, 0)
        until_s = self._now_s() + self._patience_s
        while waiting:
            codes: dict[Place, int]
            try:
                answer = await self._client.request(self._produce_request(waiting), timeout_s=ATTEMPT_S)
            except ClientError as error:
                codes = dict.fromkeys(waiting, int(error.code))
                is_sent = not isinstance(error, BrokerUnreachable | NotSent)
            else:
                is_sent = True
                codes = {place: int(told.error_code) for place, told in _told(waiting, answer)}
                outcomes |= {
                    place: Written(told.base_offset)
                    for place, told in _told(waiting, answer)
                    if told.error_code in WRITTEN
                }
            is_over = self._now_s() + RETRY_S > until_s
            for place, code in codes.items():
                attempts[place] += is_sent
                if code not in WRITTEN and (is_over or code not in RETRIABLE):
                    outcomes[place] = StepFailed(code, is_certain=_is_certain(code, attempts[place], is_sent=is_sent))
            waiting = {place: batch for place, batch in waiting.items() if place not in outcomes}
            if waiting:
                await self._client.clock.sleep(RETRY_S)
        return outcomes

    def _produce_request(self, batches: Mapping[Place, bytearray]) -> ProduceRequest:
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        for place, batch in batches.items():
            topic = topics.setdefault(
                place.topic_id, ProduceRequest.TopicProduceData(topic_id=parse_id(place.topic_id), partition_data=[])
            )
            topic.partition_data.append(ProduceRequest.PartitionProduceData(place.partition, batch))
        return ProduceRequest(
            transactional_id=self._id, acks=-1, timeout_ms=REQUEST_TIMEOUT_MS, topic_data=[*topics.values()]
        )

    # --- coordinators

    async def _settle(self, kind: Kind, key: str, request: Message, codes_of: Callable[[Any], list[int]]) -> Any:
        """The answer without an error, sooner or later; ``StepFailed`` otherwise."""
        until_s = self._now_s() + self._patience_s
        attempts = 0
        while True:
            is_sent = False
            try:
                node_id = await find_coordinator(self._client, kind, key, ATTEMPT_S)
                is_sent = True
                answer = await self._client.request(request, node_id, ATTEMPT_S)
                codes = [code for code in codes_of(answer) if code]
                if not codes:
                    return answer
                code = codes[0]
            except ClientError as error:
                is_sent = is_sent and not isinstance(error, BrokerUnreachable | NotSent)
                code = int(error.code)
            attempts += is_sent
            if code not in RETRIABLE or self._now_s() + RETRY_S > until_s:
                raise StepFailed(code, is_certain=_is_certain(code, attempts, is_sent=is_sent))
            await self._client.clock.sleep(RETRY_S)

    def _now_s(self) -> float:
        return self._client.clock.monotonic()


def _is_certain(code: int, attempts: int, *, is_sent: bool) -> bool:
    """Nothing ever left, or one request was refused for good: an answer after which one may try again can leave
    something behind (a record that was appended and not seen committed)."""
    return attempts == 0 or (attempts == 1 and is_sent and code not in RETRIABLE)


def _told(places: Mapping[Place, Any], answer: Any) -> list[tuple[Place, Any]]:
    by_id = {(topic.topic_id, told.index): told for topic in answer.responses for told in topic.partition_responses}
    return [(place, by_id[parse_id(place.topic_id), place.partition]) for place in places]
