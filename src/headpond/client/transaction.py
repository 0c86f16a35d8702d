"""One transaction of one transactional id, from its beginning to its end.

    transaction = Transaction(client, "copy-orders", timeout_ms=60_000)
    await transaction.begin()                           # fences whoever had the id, ends what it left open
    await transaction.add(partitions)
    ...                                                 # ``BatchProducer`` writes into them
    await transaction.commit_offsets("group", {tp: GroupOffset(7, -1, "note")})
    await transaction.commit()                          # or abort()

Each step is repeated while the coordinator moves, loads or is busy with an earlier end, and when an answer was lost:
all of them mean the same when done twice. After a ``ClientError`` from ``commit`` nobody knows how it ended; whoever
begins next with the same id finds it decided.

How         As clients did before KIP-890's second half: partitions are added before they are written to, so it works
            with every Kafka since 2.5. One ``begin`` for each transaction: its epoch is its own, and a request of it
            that arrives late is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headpond.client.client import Client
from headpond.client.coordinators import Coordinated, Kind, ask_coordinator
from headpond.client.errors import refusal
from headpond.client.group_admin import GroupOffset
from headpond.client.outbox import Identity
from headpond.client.routing import topics_of
from headpond.model import ErrorCode, TopicPartition, invariant
from headpond.protocol.schema.add_offsets_to_txn import AddOffsetsToTxnRequest
from headpond.protocol.schema.add_partitions_to_txn import AddPartitionsToTxnRequest
from headpond.protocol.schema.end_txn import EndTxnRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest
from headpond.protocol.types import Message

BUSY = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS})
"""The end of an earlier transaction of this id is still being written down."""
UNKNOWN_YET = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}) | BUSY

# The newest versions of clients that add partitions themselves.
ADD_PARTITIONS_VERSION_MAX = 3
ADD_OFFSETS_VERSION_MAX = 3
OFFSET_COMMIT_VERSION_MAX = 4
END_VERSION_MAX = 4


class Transaction:
    def __init__(
        self, client: Client, transactional_id: str, *, timeout_ms: int, patience_s: float | None = None
    ) -> None:
        """``timeout_ms``: after which the coordinator aborts what is open. ``patience_s``: for each step."""
        self.transactional_id = transactional_id
        self.identity: Identity | None = None
        self._client = client
        self._timeout_ms = timeout_ms
        self._patience_s = client.timeout_s if patience_s is None else patience_s

    async def begin(self) -> None:
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms)
        response = await self._ask(request, lambda answer: [answer.error_code], None)
        self.identity = Identity(response.producer_id, response.producer_epoch, 0)

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        producer = self._producer()
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[tp.partition for tp in tps])
            for name, tps in topics_of(partitions).items()
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )

        def codes_of(answer: Any) -> list[int]:
            codes = [
                one.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            ]
            # One partition's refusal keeps the others out, which then say only that.
            return sorted(codes, key=lambda code: code == ErrorCode.OPERATION_NOT_ATTEMPTED)

        await self._ask(request, codes_of, ADD_PARTITIONS_VERSION_MAX)

    async def commit_offsets(self, group_id: str, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Where the group will be if the transaction is committed."""
        producer = self._producer()
        added = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id=group_id,
        )
        await self._ask(added, lambda answer: [answer.error_code], ADD_OFFSETS_VERSION_MAX)
        topics = [
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                        partition_index=tp.partition,
                        committed_offset=offsets[tp].offset,
                        committed_leader_epoch=offsets[tp].leader_epoch,
                        committed_metadata=offsets[tp].metadata,
                    )
                    for tp in tps
                ],
            )
            for name, tps in topics_of(offsets).items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=topics,
        )
        await self._ask(
            request,
            lambda answer: [one.error_code for topic in answer.topics for one in topic.partitions],
            OFFSET_COMMIT_VERSION_MAX,
            "group",
            group_id,
            UNKNOWN_YET,
        )

    async def commit(self) -> None:
        await self._end(is_committed=True)

    async def abort(self) -> None:
        await self._end(is_committed=False)

    async def _end(self, *, is_committed: bool) -> None:
        producer = self._producer()
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=is_committed,
        )
        await self._ask(request, lambda answer: [answer.error_code], END_VERSION_MAX)

    def _producer(self) -> Identity:
        invariant(self.identity is not None, "a transaction that has not begun", self.transactional_id)
        assert self.identity is not None
        return self.identity

    async def _ask(
        self,
        request: Message,
        codes_of: Callable[[Any], list[int]],
        version_max: int | None,
        kind: Kind = "transaction",
        key: str = "",
        also_retried: frozenset[ErrorCode] = BUSY,
    ) -> Any:
        """The answer of the coordinator; raises the first error in it."""
        response = await ask_coordinator(
            self._client,
            Coordinated(kind, key or self.transactional_id),
            request,
            codes_of,
            self._patience_s,
            may_repeat=True,
            version_max=version_max,
            also_retried=also_retried,
        )
        for code in codes_of(response):
            if code:
                raise refusal(code, f"{kind} {key or self.transactional_id}")
        return response
