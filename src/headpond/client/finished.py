"""Writes batches that somebody has finished already: only the producer's fields are filled in.

    async with BatchProducer(client) as producer:                                    # idempotent
    async with BatchProducer(client, transaction=transaction) as producer:           # part of a transaction
        await producer.send([(tp, batch, record_count), ...])                        # taken; waits only for memory
        await producer.flush()                                                       # all are written, or it raises

Promises    Batches of one partition are written in the order in which they were given, each once, partitions side by
            side. The first failure is the last thing that happens: later batches are not sent, and ``send`` and
            ``flush`` raise it.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from headpond.client.client import Client
from headpond.client.delivery import Sender, SenderSettings
from headpond.client.errors import ClientClosed
from headpond.client.outbox import Identity, Memory, Outgoing
from headpond.client.transaction import Transaction
from headpond.model import TopicPartition
from headpond.protocol.records.compression import NONE
from headpond.protocol.records.producer import patch_producer


class BatchProducer:
    def __init__(
        self,
        client: Client,
        *,
        transaction: Transaction | None = None,
        request_bytes_max: int = 4 * 1024 * 1024,
        buffer_bytes_max: int = 32 * 1024 * 1024,
        delivery_timeout_s: float = 120.0,
        request_timeout_s: float = 30.0,
    ) -> None:
        """``transaction``: one that has begun, with the partitions added."""
        self._client = client
        self._memory = Memory(buffer_bytes_max)
        self._is_transactional = transaction is not None
        self._sender = Sender(
            client,
            self._memory,
            SenderSettings(
                request_bytes_max=request_bytes_max,
                delivery_timeout_s=delivery_timeout_s,
                request_timeout_s=request_timeout_s,
            ),
            identity=None if transaction is None else transaction.identity,
            transactional_id=None if transaction is None else transaction.transactional_id,
            stops_at_failure=True,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, batches: Iterable[tuple[TopicPartition, bytearray, int]]) -> None:
        """Each is (partition, exactly one batch, how many records it holds); the bytes are ours from now on."""
        for tp, data, record_count in batches:
            if not self._memory.try_take(len(data)):
                await self._wait_for_memory(len(data))
            if self._sender.failure is not None or self._sender.is_closed:
                self._memory.release(len(data))
                raise self._sender.failure or ClientClosed()
            batch = _Finished(tp, self._client.clock.monotonic(), data, record_count, self._is_transactional)
            self._sender.add(self._sender.queue(tp), batch)

    async def flush(self) -> None:
        await self._sender.flush()
        if self._sender.failure is not None:
            raise self._sender.failure

    async def close(self) -> None:
        """What is not written yet will not be."""
        await self._sender.close()

    async def _wait_for_memory(self, size_bytes: int) -> None:
        turn = self._memory.queue_up(size_bytes)
        self._sender.wake()
        is_ours = False
        try:
            await turn  # every batch has an outcome in time, and gives its memory back
            is_ours = True
        finally:
            if not is_ours:
                self._memory.give_up(turn, size_bytes)


class _Finished(Outgoing):
    is_divisible = False
    __slots__ = ("_data", "_is_transactional")

    def __init__(
        self, tp: TopicPartition, created_at_s: float, data: bytearray, record_count: int, is_transactional: bool
    ) -> None:
        super().__init__(tp, created_at_s, NONE, None)
        self.is_closed = True
        self.count = record_count
        self.size_bytes = self.memory_bytes = len(data)
        self._data = data
        self._is_transactional = is_transactional

    def encode(self, identity: Identity) -> bytearray:
        patch_producer(
            self._data,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=identity.next_sequence,
            is_transactional=self._is_transactional,
        )
        return self._data

    def _finish(self) -> None:
        self._data = bytearray()
        super()._finish()
