"""Transactional producers of version 2 (KIP-890): a producer id and its growing epochs go on over many transactions, as
long as nothing goes wrong. Two programs share their transactional ids, as in ``transactions``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headpond.client import Client
from headpond.model import TopicPartition
from simulation.history import CommitOffset, EndTransaction, Fenced, Operation
from simulation.site import Site
from simulation.workloads.producer_v2 import ProducerV2, StepFailed
from simulation.workloads.transactional import PATIENCE_S, TIMEOUTS_MS, Row, begin_batches, transact


async def write_transactions_v2(site: Site) -> None:
    await asyncio.gather(_program(site, "a", "b"), _program(site, "b", "a"))


async def _program(site: Site, mine: str, other: str) -> None:
    async with site.client() as client:
        writers = {each: WriterV2(site, client, f"{site.name}-{each}", mine) for each in (mine, other)}
        await transact(site, client, writers, site.topics, f"{site.name}-offsets")


class WriterV2:
    """A session is a producer from its InitProducerId to the first end that failed."""

    def __init__(
        self, site: Site, client: Client, transactional_id: str, program: str, *, is_progress: bool = True
    ) -> None:
        """``is_progress``: whether the workload gets on by its commits."""
        self._site = site
        self._client = client
        self._id = transactional_id
        self._program = program
        self._is_progress = is_progress
        self._producer: ProducerV2 | None = None
        self._process = ""
        self._name = ""

    async def begin(self) -> bool:
        if self._producer is None and not await self._begin_session():
            return False
        self._name = f"{self._site.unique()}.{self._program}"
        return True

    async def _begin_session(self) -> bool:
        site = self._site
        self._process = f"{site.unique()}.{self._program}"
        producer = ProducerV2(self._client, self._id, timeout_ms=site.chance.choice(TIMEOUTS_MS), patience_s=PATIENCE_S)
        fenced = site.begin(Fenced(process=self._process, invoked_s=0, transactional_id=self._id))
        try:
            await producer.init()
        except StepFailed as failed:
            self._failed(fenced, failed)
            return False
        fenced.producer_id, fenced.producer_epoch = producer.producer_id, producer.epoch
        site.ok(fenced, is_progress=False)
        self._producer = producer
        return True

    async def write(self, rows: Sequence[Row]) -> bool:
        producer = self._producer
        assert producer is not None
        identity = producer.producer_id, producer.epoch
        batches = begin_batches(self._site, self._process, self._name, identity, rows, is_by_id=True)
        outcomes = await producer.produce({batch.place: (batch.encoded(), len(batch.records)) for batch in batches})
        is_done = True
        for batch in batches:
            outcome = outcomes[batch.place]
            for number, send in enumerate(batch.sends):
                if isinstance(outcome, StepFailed):
                    self._failed(send, outcome)
                    is_done = False
                else:
                    send.offset = outcome.offset + number if outcome.offset >= 0 else -1
                    self._site.ok(send, is_progress=False)
        return is_done

    async def commit_offset(self, group: str, tp: TopicPartition, offset: int) -> bool:
        assert self._producer is not None
        commit = self._site.begin(
            CommitOffset(
                process=self._process,
                invoked_s=0,
                group=group,
                topic=tp.topic,
                partition=tp.partition,
                offset=offset,
                transaction=self._name,
            )
        )
        try:
            await self._producer.commit_offset(group, tp, offset)
        except StepFailed as failed:
            self._failed(commit, failed)
            return False
        self._site.ok(commit, is_progress=False)
        return True

    async def end(self, *, is_commit: bool) -> bool:
        producer = self._producer
        assert producer is not None
        end = self._site.begin(
            EndTransaction(
                process=self._process,
                invoked_s=0,
                transaction=self._name,
                transactional_id=self._id,
                is_commit=is_commit,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
            )
        )
        try:
            await producer.end(is_commit=is_commit)
        except StepFailed as failed:
            self._failed(end, failed)
            self._producer = None
            return False
        self._site.ok(end, is_progress=is_commit and self._is_progress)
        return True

    def vanish(self) -> None:
        self._producer = None

    def _failed(self, operation: Operation, failed: StepFailed) -> None:
        self._site.refused(operation, failed.code)
        if not failed.is_certain:
            operation.outcome = "unknown"
