"""Tens of thousands of logs: whatever looks at all of them looks at a limited number before the loop turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headpond.model import TopicPartition
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.folder import data_folder
from headpond.storage.log.log import PartitionLog
from headpond.storage.producers.producers import ProducerStates
from simulation.harness.turns import settle
from unit.storage.storage_rig import TOPIC_ID, Rig, make_batch

MANY = 350
IN_ONE_SLICE = 100
KNOWN = {TopicPartition("orders", n): TOPIC_ID for n in range(MANY)}


class Turns:
    """How often something was done in each turn of the loop."""

    def __init__(self) -> None:
        self.turn = 0
        self.counts: Counter[int] = Counter()

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **named: Any) -> Any:
            self.counts[self.turn] += 1
            return function(*arguments, **named)

        return count

    async def go_on(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


def run(test: Callable[[Rig, Turns], Coroutine[Any, Any, None]]) -> None:
    async def go() -> None:
        rig, turns = Rig(known=KNOWN), Turns()
        counting = asyncio.ensure_future(turns.go_on())
        await rig.open()
        await test(rig, turns)
        counting.cancel()
        await rig.close()

    asyncio.run(go())


def test_a_checkpoint_round_of_many_logs_is_done_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig, turns: Turns) -> None:
        for log in rig.manager.all():
            await rig.append(log, make_batch(1), flush=True)
        monkeypatch.setattr(log_checkpoint, "begin", turns.counted(log_checkpoint.begin))
        await rig.checkpoint()
        assert sum(turns.counts.values()) == MANY and max(turns.counts.values()) <= IN_ONE_SLICE
        assert all(log.recovery_point == 1 for log in rig.manager.all())

    run(test)


def test_retention_of_many_logs_is_applied_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig, turns: Turns) -> None:
        monkeypatch.setattr(PartitionLog, "delete_old_segments", turns.counted(PartitionLog.delete_old_segments))
        await rig.manager.delete_old_segments()
        assert sum(turns.counts.values()) == MANY and max(turns.counts.values()) <= IN_ONE_SLICE

    run(test)


def test_idle_producers_of_many_logs_are_forgotten_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig, turns: Turns) -> None:
        monkeypatch.setattr(ProducerStates, "expire", turns.counted(ProducerStates.expire))
        await asyncio.sleep(0)  # the housekeeping begins to wait
        rig.clock.advance(rig.storage.producer_id_check_interval_ms / 1_000)
        await settle(20)
        assert sum(turns.counts.values()) == MANY and max(turns.counts.values()) <= IN_ONE_SLICE

    run(test)


def test_the_folders_of_many_deleted_logs_are_moved_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig, turns: Turns) -> None:
        for log in rig.manager.all():
            await rig.append(log, make_batch(1), flush=True)
        jobs: list[int] = []
        move_away = data_folder.move_away

        def count(fs: Any, data_dir: str, moves: Any) -> Any:
            jobs.append(len(moves))
            return move_away(fs, data_dir, moves)

        monkeypatch.setattr(data_folder, "move_away", count)
        monkeypatch.setattr(PartitionLog, "stop", turns.counted(PartitionLog.stop))
        await rig.manager.delete(*KNOWN)
        assert jobs == [100, 100, 100, 50]
        assert max(turns.counts.values()) <= IN_ONE_SLICE
        folders = [name for name in await rig.files() if name.startswith(("orders-", "orders."))]
        assert len(folders) == MANY and all(name.endswith("-delete") for name in folders)
        assert not rig.manager.all() and not rig.manager._deletions

    run(test)


def test_a_folder_that_can_not_be_moved_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig, turns: Turns) -> None:
        for log in rig.manager.all()[:3]:
            await rig.append(log, make_batch(1), flush=True)
        rename = rig.disk.rename

        def fail_once(source: str, target: str) -> None:
            if source.endswith("/orders-1"):
                raise OSError("no")
            rename(source, target)

        monkeypatch.setattr(rig.disk, "rename", fail_once)
        await rig.manager.delete(*KNOWN)
        assert [name for name in await rig.files() if name in ("orders-0", "orders-1", "orders-2")] == ["orders-1"]

    run(test)
