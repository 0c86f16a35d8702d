"""Wide requests, which name many partitions: one at a time, and each a slice at a time.

A request costs the loop what it names. A wide one is decoded by a worker and then served in slices, between which the
loop turns (``coordination.slices``). Decoded it takes many times its bytes: so only one is under way, and the others
wait as they came, in the receive memory of their connections, which is counted. A connection whose request waits or is
under way is held.

    handler: receive -> turns.wait     ... others' turns ...     receive again -> turns.take(connection, work) -> work
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from headpond.broker.net.connection import Connection
from headpond.coordination.slices import Slices
from headpond.ports import Tasks
from headpond.protocol.errors import MalformedMessage, ProtocolError

PARTITIONS_PER_SLICE = 500
"""What the loop looks at before it turns: a few milliseconds. A request with fewer is served at once."""
ELEMENTS_MAX = 1_000_000
"""In one list of a request; one with more is malformed."""
LARGE_REQUEST_BYTES = 16_384
"""Smaller ones are decoded on the loop: they name a thousand partitions at most."""

Work = Coroutine[Any, Any, None]


def check_count(count: int) -> None:
    if count > ELEMENTS_MAX:
        raise MalformedMessage(f"a list of {count} elements")


class Turns:
    def __init__(self, slices: Slices, tasks: Tasks) -> None:
        self.slices = slices
        self._tasks = tasks
        self._one_at_a_time = asyncio.Lock()  # first come, first served
        self._granted: Connection | None = None
        self._taken: Work | None = None

    def is_turn_of(self, connection: Connection) -> bool:
        return self._granted is connection

    def wait(self, connection: Connection, what: str) -> None:
        """Put the current request back: it is served again at its turn."""
        connection.serve_again_later()
        connection.hold()
        self._tasks.spawn(what, self._grant(connection))

    def take(self, connection: Connection, work: Work) -> None:
        """The work of the request whose turn it is. The connection is held until it is done."""
        connection.hold()
        self._taken = work

    def queue(self, connection: Connection, what: str, work: Work) -> None:
        """The same for a small request that is settled already, and means much: its work waits for its turn."""
        connection.hold()
        self._tasks.spawn(what, self._queued(connection, work))

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """The work under way has to wait for something: others have their turn meanwhile."""
        self._one_at_a_time.release()
        try:
            yield
        finally:
            await self._one_at_a_time.acquire()

    async def _grant(self, connection: Connection) -> None:
        async with self._one_at_a_time:
            self._granted = connection
            try:
                connection.unhold()  # serves it; or does not, if the peer has gone or takes no answers: it comes again
            finally:
                self._granted = None
                work, self._taken = self._taken, None
            if work is not None:
                await _finish(connection, work)

    async def _queued(self, connection: Connection, work: Work) -> None:
        async with self._one_at_a_time:
            await _finish(connection, work)


async def _finish(connection: Connection, work: Work) -> None:
    try:
        await work
    except ProtocolError as malformed:
        connection.server.refuse_request(connection, malformed)
    except Exception:
        connection.server.report_bug(connection)
    finally:
        connection.unhold()
