"""What a handler knows about the request beyond its body."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from headpond.broker.requests.pacing import A_LOOK, A_ROW, COST_MAX, SLICE_COST, AnswerTooLarge
from headpond.coordination.slices import Work
from headpond.model import invariant

if TYPE_CHECKING:
    from headpond.broker.services import Broker
    from headpond.storage.looks.looks import Asker

T = TypeVar("T")


class ListenerInfo(NamedTuple):
    """The listener that a connection came in on; Metadata answers with its advertised address."""

    name: str
    protocol: str
    advertised_host: str
    advertised_port: int


class Principal(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")


class Context(msgspec.Struct, gc=False):
    """One request's surroundings; made per request for cold APIs, reused by the hot ones of a connection.

    A handler that does something for each element of a request, or of what the broker holds, counts it here, so that
    the loop turns in between (``pacing.py``)::

        rows = [_row(ctx, wanted) async for wanted in ctx.in_slices(request.topics)]

    There must be no pause between a check and the change that relies on it.
    """

    broker: Broker
    listener: ListenerInfo
    version: int
    client_id: str | None = None
    principal: Principal = ANONYMOUS
    peer_host: str = ""
    asker: Asker | None = None
    """The connection: whose turn it is where requests wait for one another."""
    spent: int = 0
    pause_at: int = SLICE_COST
    is_long: bool = False

    async def in_slices(self, elements: Iterable[T], cost: int = A_ROW) -> AsyncIterator[T]:
        """The elements, with a pause after each slice of them. What they come from must not change meanwhile."""
        for element in elements:
            self.spent += cost
            if self.spent > self.pause_at:
                await self.pause()
            yield element

    async def in_parts(self, elements: Sequence[T], size: int, cost: int = A_ROW) -> AsyncIterator[Sequence[T]]:
        """The elements, so many at a time, for what takes several together; one part at least."""
        for start in range(0, len(elements) or 1, size):
            part = elements[start : start + size]
            await self.spend(cost * len(part))
            yield part

    async def spend(self, cost: int) -> None:
        """So much was done, or is about to be: pause, if that makes a slice."""
        self.spent += cost
        if self.spent > self.pause_at:
            await self.pause()

    async def counted(self, names: Iterable[T]) -> dict[T, int]:
        """How often each comes, in the order in which they come first."""
        times: dict[T, int] = {}
        async for name in self.in_slices(names, A_LOOK):
            times[name] = times.get(name, 0) + 1
        return times

    async def finish(self, work: Work[T]) -> T:
        """For what is sliced elsewhere, and has no jobs for workers."""
        while True:
            try:
                invariant(next(work) is None, "a job for a worker")
            except StopIteration as finished:
                return finished.value  # type: ignore[no-any-return]
            self.spent += SLICE_COST
            await self.pause()

    async def pause(self) -> None:
        if self.spent > COST_MAX:
            raise AnswerTooLarge(f"more than {COST_MAX // A_ROW} rows")
        pacing = self.broker.pacing
        if not self.is_long:
            await pacing.long.enter()
            if self.is_long or self.spent > COST_MAX:
                pacing.long.leave()  # another part of the request has got a place meanwhile, or has ended it
            else:
                self.is_long = True
        await pacing.slices.turn()
        self.pause_at = self.spent + SLICE_COST

    def leave(self) -> None:
        """The request is answered, or waits for something else: others may take long."""
        if self.is_long:
            self.is_long = False
            self.broker.pacing.long.leave()
