"""Keeps the image up to date: lists the store once, then watches it.

Promises   every revision is applied once, in order; subscribers hear of it on the loop, before anyone who waits for
           that revision goes on: at once, or in pieces when it changed many partitions, and the loop turns in between.
           A watch that fails is taken up again where the image stands; when the store has forgotten that revision, or
           the watch went silent, the store is listed anew.
A crash    costs nothing: the image is only a copy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from headpond.cluster.delta import Delta
from headpond.cluster.image import MetadataImage
from headpond.model import BrokerError, ErrorCode, InvariantBroken, invariant
from headpond.model.backoff import Backoff
from headpond.ports import Changes, Clock, HistoryLost, MetadataStore, Tasks

log = logging.getLogger(__name__)

RETRY_FIRST_S = 0.05
RETRY_MAX_S = 5.0
# A watch normally delivers within milliseconds. When it does not, and somebody waits, listing beats doubting.
SILENCE_MAX_S = 1.0

PARTITIONS_PER_PIECE = 500
"""What subscribers hear of before the loop turns: a log for each of them is made in a few milliseconds."""

FOLLOWER_TASK = "follow the metadata store"
"""The task's name: a broker whose follower has failed must not go on as if it had not."""

Subscriber = Callable[[Delta], None]


class ImageFollower:
    def __init__(self, store: MetadataStore, image: MetadataImage, clock: Clock, tasks: Tasks) -> None:
        self.image = image
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._subscribers: list[Subscriber] = []
        self._subscribers_to_pieces: list[Subscriber] = []
        self._waiters: list[tuple[int, int, asyncio.Future[bool]]] = []
        self._waiter_number = 0
        self._published_revision = 0
        self._one_at_a_time = asyncio.Lock()  # a revision is published before the next one is applied

    def subscribe(self, subscriber: Subscriber, *, in_pieces: bool = False) -> None:
        """Called with every later delta; or with its pieces, before the others hear of it. A subscriber that raises
        stops the follower: a broker that can't follow its metadata must not go on as if it did."""
        (self._subscribers_to_pieces if in_pieces else self._subscribers).append(subscriber)

    async def start(self) -> None:
        """List the store into the image (raises what the store raises), then keep following it in a task."""
        await self.refresh()
        self._tasks.spawn(FOLLOWER_TASK, self._follow())

    async def refresh(self) -> None:
        """List the store now and bring the image to that revision."""
        listing = await self._store.list("")
        async with self._one_at_a_time:
            if listing.revision >= self.image.revision:  # else the watch has overtaken the listing
                await self._publish(self.image.load(listing))

    async def wait_for(self, revision: int, *, timeout_s: float) -> None:
        """Return when the image has ``revision`` and all have heard of it; REQUEST_TIMED_OUT when that takes longer
        than ``timeout_s``."""
        deadline = self._clock.monotonic() + timeout_s
        while self._published_revision < revision:
            left_s = deadline - self._clock.monotonic()
            if left_s <= 0:
                raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
            if await self._arrives(revision, min(left_s, SILENCE_MAX_S)) or left_s <= SILENCE_MAX_S:
                continue
            if self.image.revision < revision:  # else it is being told
                await self._refresh_or_log()

    async def _arrives(self, revision: int, timeout_s: float) -> bool:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiter_number += 1
        heappush(self._waiters, (revision, self._waiter_number, future))
        timer = self._clock.call_later(timeout_s, lambda: _resolve(future, arrived=False))
        try:
            return await future
        finally:
            timer.cancel()

    async def _follow(self) -> None:
        backoff = Backoff(RETRY_FIRST_S, RETRY_MAX_S)
        while True:
            started_at = self.image.revision
            try:
                await self._watch()
                return  # the store was closed
            except HistoryLost:
                log.info("the metadata store has forgotten revision %d; listing it", self.image.revision)
                await self._refresh_or_log()
            except InvariantBroken:
                raise
            except Exception as error:
                log.warning("the watch of the metadata store failed (%r); taking it up again", error)
            if self.image.revision > started_at:
                backoff.reset()
            await self._clock.sleep(backoff.next_s())

    async def _refresh_or_log(self) -> None:
        try:
            await self.refresh()
        except InvariantBroken:
            raise
        except Exception as error:
            log.warning("listing the metadata store failed (%r); trying again", error)

    async def _watch(self) -> None:
        async for changes in self._store.watch("", after_revision=self.image.revision):
            await self._take(changes)

    async def _take(self, changes: Changes) -> None:
        async with self._one_at_a_time:
            if changes.revision > self.image.revision:  # else a listing was faster, or the store repeats itself
                await self._publish(self.image.apply(changes))

    async def _publish(self, delta: Delta) -> None:
        for number, piece in enumerate(delta.pieces(PARTITIONS_PER_PIECE)):
            if number:
                await asyncio.sleep(0)
            _tell(self._subscribers_to_pieces, piece)
        _tell(self._subscribers, delta)
        invariant(delta.revision == self.image.revision, "the image moved while it was published")
        self._published_revision = delta.revision
        while self._waiters and self._waiters[0][0] <= delta.revision:
            _resolve(heappop(self._waiters)[2], arrived=True)


def _tell(subscribers: Iterable[Subscriber], delta: Delta) -> None:
    for subscriber in subscribers:
        try:
            subscriber(delta)
        except Exception as error:
            raise InvariantBroken(f"a change of the metadata could not be taken: {error!r}") from error


def _resolve(future: asyncio.Future[bool], *, arrived: bool) -> None:
    if not future.done():
        future.set_result(arrived)
