"""Transactional producers of version 1: each transaction begins with InitProducerId, and adds its partitions before it
writes to them. Two programs share their transactional ids: each may take the other's in the middle of a transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headpond.client import Client, ClientError
from headpond.client.finished import BatchProducer
from headpond.client.group_admin import GroupOffset
from headpond.client.transaction import Transaction
from headpond.model import TopicPartition
from simulation.history import CommitOffset, EndTransaction, Fenced
from simulation.site import CLIENT_TIMEOUT_S, Site
from simulation.workloads.transactional import PATIENCE_S, TIMEOUTS_MS, Row, begin_batches, transact

DELIVERY_TIMEOUT_S = 8.0


async def write_transactions(site: Site) -> None:
    await asyncio.gather(_program(site, "a", "b"), _program(site, "b", "a"))


async def _program(site: Site, mine: str, other: str) -> None:
    async with site.client() as client:
        writers = {each: WriterV1(site, client, f"{site.name}-{each}", mine) for each in (mine, other)}
        await transact(site, client, writers, site.topics, f"{site.name}-offsets")


class WriterV1:
    """Our client's ``Transaction``. It repeats each step by itself, so that an error never says that nothing was
    done."""

    def __init__(
        self, site: Site, client: Client, transactional_id: str, program: str, *, is_progress: bool = True
    ) -> None:
        """``is_progress``: whether the workload gets on by its commits."""
        self._site = site
        self._client = client
        self._id = transactional_id
        self._program = program
        self._is_progress = is_progress
        self._transaction: Transaction | None = None
        self._producer: BatchProducer | None = None
        self._added: set[TopicPartition] = set()
        self._name = ""

    async def begin(self) -> bool:
        await self._close()
        site = self._site
        self._name = f"{site.unique()}.{self._program}"
        self._added = set()
        self._transaction = Transaction(
            self._client, self._id, timeout_ms=site.chance.choice(TIMEOUTS_MS), patience_s=PATIENCE_S
        )
        fenced = site.begin(Fenced(process=self._name, invoked_s=0, transactional_id=self._id))
        try:
            await self._transaction.begin()
        except ClientError as error:
            site.lost(fenced, error)
            return False
        fenced.producer_id, fenced.producer_epoch = self._identity()
        site.ok(fenced, is_progress=False)
        self._producer = BatchProducer(
            self._client,
            transaction=self._transaction,
            delivery_timeout_s=DELIVERY_TIMEOUT_S,
            request_timeout_s=CLIENT_TIMEOUT_S,
        )
        return True

    async def write(self, rows: Sequence[Row]) -> bool:
        assert self._transaction is not None and self._producer is not None
        new = {TopicPartition(row.place.topic, row.place.partition) for row in rows} - self._added
        try:
            await self._transaction.add(sorted(new))
        except ClientError:
            return False
        self._added |= new
        batches = begin_batches(self._site, self._name, self._name, self._identity(), rows, is_by_id=False)
        sends = [send for batch in batches for send in batch.sends]
        try:
            await self._producer.send([(batch.tp, batch.encoded(), len(batch.records)) for batch in batches])
            await self._producer.flush()
        except ClientError as error:
            for send in sends:
                self._site.lost(send, error)  # which of them it was, the producer does not tell
            return False
        for send in sends:
            self._site.ok(send, is_progress=False)
        return True

    async def commit_offset(self, group: str, tp: TopicPartition, offset: int) -> bool:
        assert self._transaction is not None
        commit = self._site.begin(
            CommitOffset(
                process=self._name,
                invoked_s=0,
                group=group,
                topic=tp.topic,
                partition=tp.partition,
                offset=offset,
                transaction=self._name,
            )
        )
        try:
            await self._transaction.commit_offsets(group, {tp: GroupOffset(offset)})
        except ClientError as error:
            self._site.lost(commit, error)
            return False
        self._site.ok(commit, is_progress=False)
        return True

    async def end(self, *, is_commit: bool) -> bool:
        assert self._transaction is not None
        producer_id, producer_epoch = self._identity()
        end = self._site.begin(
            EndTransaction(
                process=self._name,
                invoked_s=0,
                transaction=self._name,
                transactional_id=self._id,
                is_commit=is_commit,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
            )
        )
        try:
            await (self._transaction.commit() if is_commit else self._transaction.abort())
        except ClientError as error:
            self._site.lost(end, error)
            return False
        self._site.ok(end, is_progress=is_commit and self._is_progress)
        return True

    def vanish(self) -> None:
        pass  # the next one begins anew anyway

    async def _close(self) -> None:
        if self._producer is not None:
            await self._producer.close()
            self._producer = None

    def _identity(self) -> tuple[int, int]:
        assert self._transaction is not None and self._transaction.identity is not None
        return self._transaction.identity.producer_id, self._transaction.identity.epoch
