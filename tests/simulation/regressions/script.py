"""A scripted scene: the real broker on the simulated stage, and one program that asks, strikes and looks in its order.

The script is the test: it has no seed to thank for its order, and stays the same when the code changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from headpond.client import Client
from headpond.client.group.member import Member
from headpond.model import TopicPartition
from simulation.harness.chance import stream
from simulation.plan import Options, draw_settings
from simulation.site import Topic
from simulation.stage import Stage, perform

SEED = 1
"""Of latencies and of who runs next: any will do."""
PATIENCE_S = 30.0
"""Virtual: everything that a script waits for comes long before."""

Script = Callable[["Scene"], Coroutine[Any, Any, None]]


def act(script: Script, *topics: Topic) -> None:
    """Raises what the script raises; nothing else may go wrong meanwhile, neither in the broker nor in a client."""
    settings = draw_settings(stream(SEED, "options"), "ack")
    scene = Scene(script, Options("ack", (), (), topics, settings))
    history = perform(scene).history
    if scene.failure is not None:
        raise scene.failure
    assert not history.troubles and not history.unconverged, (history.unconverged, scene.notes)


class Scene(Stage):
    def __init__(self, script: Script, options: Options) -> None:
        super().__init__(SEED, options, ())
        self.failure: BaseException | None = None
        self._script = script

    async def main(self) -> None:
        self.broker.start()
        await self.until("the broker serves", lambda: self.broker.is_serving)
        self._observer.start()
        await self._set_up()
        assert self._observer.life is not None
        task = self._observer.life.spawn(self._script(self), "script")
        await asyncio.wait([task])
        self.failure = task.exception()

    def client(self) -> Client:
        """Of the one client host there is."""
        return self._observer.client(["b1"], timeout_s=10)

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        assert await self._until(holds, PATIENCE_S, what), (f"never: {what}", self.notes)

    async def until_owned(self, member: Member, *partitions: TopicPartition) -> None:
        """By the member, and nothing else."""
        await self._until(lambda: member.assignment == partitions, PATIENCE_S, "the member owns its partitions")
        assert member.assignment == partitions, f"owned: {member.assignment}, wanted: {partitions}"

    async def stopped(self) -> None:
        """As on SIGTERM, to its end; the next process starts soon."""
        self.broker.stop()
        await self.until("the broker has stopped", lambda: not self.broker.is_up)

    async def killed(self) -> None:
        """And back again."""
        self.broker.kill()
        await self.serves_again()

    async def serves_again(self) -> None:
        lives = self.broker.lives
        await self.until("the broker serves again", lambda: self.broker.lives > lives and self.broker.is_serving)
