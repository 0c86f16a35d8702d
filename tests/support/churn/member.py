"""What members of both protocols have in common: they own partitions, commit, crash, stall and leave."""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from support.async_wire import AsyncWire
from support.churn.ledger import Ledger

LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
COORDINATOR_ERRORS = (LOADING, NOT_AVAILABLE, NOT_COORDINATOR)
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 22, 25, 27
GROUP_ID_NOT_FOUND, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH = 69, 82, 110, 113
REFUSALS = (
    *COORDINATOR_ERRORS,
    ILLEGAL_GENERATION,
    UNKNOWN_MEMBER_ID,
    REBALANCE_IN_PROGRESS,
    FENCED_MEMBER_EPOCH,
    STALE_MEMBER_EPOCH,
)
"""What may be answered to a commit; everything else is a fault."""


class Scene(NamedTuple):
    """Where the members are."""

    bootstrap: str
    group: str
    topic: str
    topic_id: bytes
    ledger: Ledger
    random: random.Random
    session_ms: int
    beat_s: float = 0.25
    rebalance_ms: int = 3_000


class ChurnMember:
    def __init__(self, name: str, scene: Scene) -> None:
        self.name = name
        self.scene = scene
        self.wire = AsyncWire(scene.bootstrap)
        self.member_id = ""
        self.epoch = -1
        self.positions: dict[int, int | None] = {}  # of what it owns; None: not asked yet
        self.is_settled = False
        self._stall_s = 0.0
        self._leaves = False
        self._task: asyncio.Task[None] | None = None

    # --- what happens to it

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    @property
    def failure(self) -> BaseException | None:
        """What it found to be wrong."""
        task = self._task
        return task.exception() if task is not None and task.done() and not task.cancelled() else None

    async def crash(self) -> None:
        """Nothing is heard of it any more."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        self.wire.close()
        self.scene.ledger.gone(self.name)

    def stall(self, seconds: float) -> None:
        """It says nothing for a while, and then goes on as if nothing had been."""
        self._stall_s = seconds

    async def leave(self) -> None:
        self._leaves = True
        assert self._task is not None
        await asyncio.wait([self._task])
        self.wire.close()
        self.scene.ledger.gone(self.name)

    # --- its life

    async def _run(self) -> None:
        while not self._leaves:
            try:
                await self._live()
            except ConnectionError:  # the broker is away
                self.is_settled = False
                await asyncio.sleep(self.scene.beat_s)
        try:
            self.drop_all()
            await self._say_goodbye()
        except ConnectionError:
            pass

    async def _live(self) -> None:
        """Returns when it was told to leave."""
        raise NotImplementedError

    async def _say_goodbye(self) -> None:
        raise NotImplementedError

    async def pause(self) -> None:
        """Between two requests: the moment at which it may stall."""
        if self._stall_s:
            seconds, self._stall_s = self._stall_s, 0.0
            await asyncio.sleep(seconds)

    async def rest(self) -> None:
        await asyncio.sleep(self.scene.beat_s)

    # --- partitions

    def drop_all(self) -> None:
        self.scene.ledger.give_up(self.name, list(self.positions))
        self.positions = {}

    def hold(self, partitions: set[int]) -> None:
        """Exactly these."""
        dropped = self.positions.keys() - partitions
        self.scene.ledger.give_up(self.name, dropped)
        for partition in dropped:
            del self.positions[partition]
        for partition in sorted(partitions - self.positions.keys()):
            self.scene.ledger.take(self.name, partition)
            self.positions[partition] = None

    async def find_positions(self) -> None:
        unknown = [partition for partition, position in self.positions.items() if position is None]
        if not unknown:
            return
        ledger = self.scene.ledger
        before = {partition: ledger.acknowledged[partition] for partition in unknown}
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=self.scene.topic, partition_indexes=unknown)
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self.scene.group, topics=[topic], **self._fetch_identity()
        )
        answer = (await self.wire.call(OffsetFetchRequest(groups=[group]), 9)).groups[0]
        if answer.error_code:
            assert answer.error_code in REFUSALS, answer.error_code
            return
        for row in answer.topics[0].partitions:
            assert row.error_code == 0, row.error_code
            offset = max(row.committed_offset, 0)
            ledger.found(self.name, row.partition_index, before[row.partition_index], offset)
            if row.partition_index in self.positions:
                self.positions[row.partition_index] = offset

    def _fetch_identity(self) -> dict[str, object]:
        return {}

    async def commit(self) -> None:
        """The next offset of everything that it owns."""
        offsets = {at: offset + 1 for at, offset in self.positions.items() if offset is not None}
        if not offsets:
            return
        ledger = self.scene.ledger
        lost = ledger.has_lost(self.name)
        ledger.attempt(offsets)
        rows = [
            OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=at, committed_offset=offset)
            for at, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=self.scene.group,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=self.scene.topic, partitions=rows)],
        )
        for row in (await self.wire.call(request, 9)).topics[0].partitions:
            at = row.partition_index
            if row.error_code:
                assert row.error_code in REFUSALS, row.error_code
                continue
            ledger.acknowledge(self.name, lost, at, offsets[at])
            if at in self.positions:
                self.positions[at] = offsets[at]
