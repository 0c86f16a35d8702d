"""Transactional batches on their way into the log (KIP-890).

Before the first batch of a transaction in a partition, its coordinator is asked: a client of Produce v11 or older has
added the partition itself, which is *verified*; for a newer one it is *added* now. The request is held back meanwhile.
Later batches find their transaction open and ask nobody. What was confirmed counts for this transaction only: if it
ended before the batch was appended, the batch is refused (INVALID_TXN_STATE), and a retry asks again. A client of the
second version goes on as soon as the end of its last transaction is decided: the marker of *that* one comes to the
partition while the coordinator is being asked, and must not be taken for the end of the new one. So every question
begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from headpond.broker.handlers.produce.wire import Result
from headpond.broker.replicas.replicas import Replica
from headpond.config.transactions import TransactionSettings
from headpond.coordination.home import Producer
from headpond.coordination.transactions.verifier import PRODUCE_ADDS_SINCE, TxnVerifier, produce_error
from headpond.model import ErrorCode, TopicPartition
from headpond.ports import Clock
from headpond.protocol.records.header import HEADER_BYTES, MAGIC, MAGIC_POSITION, TRANSACTIONAL_BIT, BatchHeader
from headpond.storage.producers.state import Verification

_ATTRIBUTES_LOW = 22

Admitted = tuple[Replica, memoryview, BatchHeader]


class Refusal(NamedTuple):
    code: ErrorCode
    message: str | None

    def result(self, index: int) -> Result:
        return Result(index, self.code, message=self.message)


Word = Verification | Refusal
"""The coordinator's, about one partition."""


class Ask(NamedTuple):
    replica: Replica
    header: BatchHeader

    @property
    def producer(self) -> Producer:
        return Producer(self.header.producer_id, self.header.producer_epoch)


def is_transactional(records: memoryview) -> bool:
    """Whether a records field begins with a transactional batch, whatever else is wrong with it."""
    return (
        len(records) >= HEADER_BYTES
        and records[MAGIC_POSITION] == MAGIC
        and records[_ATTRIBUTES_LOW] & TRANSACTIONAL_BIT != 0
    )


def is_in_transaction(header: BatchHeader) -> bool:
    """Without a producer id the bit means nothing, as in Kafka."""
    return header.attributes & TRANSACTIONAL_BIT != 0 and header.producer_id >= 0


class ProduceTransactions:
    def __init__(self, verifier: TxnVerifier, clock: Clock, settings: Callable[[], TransactionSettings]) -> None:
        self._verifier = verifier
        self._clock = clock
        self._settings = settings

    def checks(self, version: int) -> bool:
        return version >= PRODUCE_ADDS_SINCE or self._settings().verifies_partitions

    def asks(
        self, outcomes: Sequence[Sequence[Result | Admitted]], version: int, known: Mapping[Replica, Word]
    ) -> list[Ask]:
        """What the coordinator has to be asked before these batches may be appended."""
        if not self.checks(version):
            return []
        found: dict[Replica, Ask] = {}
        for row in outcomes:
            for one in row:
                if isinstance(one, Result) or not is_in_transaction(one[2]) or one[0] in known or one[0] in found:
                    continue
                replica, _, header = one
                producers = replica.partition.log.producers
                if not producers.is_open(header.producer_id, header.producer_epoch):
                    found[replica] = Ask(replica, header)
        return list(found.values())

    async def ask(self, transactional_id: str, version: int, asks: Sequence[Ask]) -> dict[Replica, Word]:
        """All are of one producer."""
        producer, by_tp = asks[0].producer, {ask.replica.partition.tp: ask for ask in asks}
        settings = self._settings()
        deadline_s = self._clock.monotonic() + settings.add_retries_for_ms / 1_000
        while True:  # the markers of its last transaction may still be on their way: that is soon over
            begun = {tp: self._begin(ask, version) for tp, ask in by_tp.items()}
            codes = await self._codes(transactional_id, producer, version, by_tp.keys())
            is_busy = version >= PRODUCE_ADDS_SINCE and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
            if not is_busy or self._clock.monotonic() >= deadline_s:
                break
            await self._clock.sleep(settings.add_retry_ms / 1_000)
        return {
            ask.replica: _word(begun[tp], codes.get(tp, ErrorCode.NETWORK_EXCEPTION), version)
            for tp, ask in by_tp.items()
        }

    def _begin(self, ask: Ask, version: int) -> Verification:
        producers = ask.replica.partition.log.producers
        return producers.begin_verification(
            ask.header, self._clock.now_ms(), starts_at_zero=version >= PRODUCE_ADDS_SINCE
        )

    async def _codes(
        self, transactional_id: str, producer: Producer, version: int, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        if version < PRODUCE_ADDS_SINCE:
            return await self._verifier.verify(transactional_id, producer, partitions)
        return await self._verifier.add(transactional_id, producer, partitions)


def _word(begun: Verification, code: ErrorCode, version: int) -> Word:
    if code is ErrorCode.NONE:
        return begun
    answered = produce_error(code, version)
    message = None
    if answered is ErrorCode.INVALID_TXN_STATE:
        message = "Partition was not added to the transaction"
    elif answered is ErrorCode.NOT_ENOUGH_REPLICAS:
        message = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
    return Refusal(answered, message)


def producers_of(outcomes: Sequence[Sequence[Result | Admitted]]) -> set[Producer]:
    """Whose transactions the batches belong to; Kafka takes those of one producer only."""
    return {
        Producer(one[2].producer_id, one[2].producer_epoch)
        for row in outcomes
        for one in row
        if not isinstance(one, Result) and is_in_transaction(one[2])
    }
