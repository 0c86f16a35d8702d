"""From Spark's side, which is not asynchronous, to the client, which is: a loop in a thread, and a client on it.

    with Link(settings) as link:
        ends = link.run(lambda client: latest_offsets(client, ...))

Questions are repeated while brokers restart or leaders move, for ``default.api.timeout.ms`` and at least
``fetchOffset.numRetries`` times: what is asked through ``run`` must change nothing, or be the same when done twice.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from headpond.client import BrokerUnreachable, Client, ClientError
from headpond.client.waiting import JitteredBackoff
from headpond.model import ErrorCode
from headpond.runtime.clock import SystemClock
from headpond.runtime.loop_thread import LoopThread
from headpond.runtime.network import TcpNetwork
from headpond.runtime.random import SystemRandom
from headpond.runtime.tasks import LoopTasks
from headpond.spark.kafka.client_settings import ClientSettings

T = TypeVar("T")

_log = logging.getLogger("headpond.spark")

SAY_AFTER_S = 5.0
"""A wait that is longer than this is worth a line in the log."""


class Link:
    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._loop = LoopThread("headpond-client")
        self._tasks: LoopTasks | None = None
        self._client: Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Connections and the thread end. Closing twice does nothing."""
        if self._tasks is not None:
            self._loop.call(self._close())
            self._tasks = self._client = None
        self._loop.close()

    def run(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """The answer, or ``ClientError`` when there is none in time."""
        return self._loop.call(self._persistently(question))

    def once(self, work: Callable[[Client], Awaitable[T]], timeout_s: float | None = None) -> T:
        """For what looks after its own repetitions. ``TimeoutError`` when it takes longer."""

        async def run() -> T:
            return await work(self._opened())

        return self._loop.call(run(), timeout_s)

    async def _persistently(self, question: Callable[[Client], Awaitable[T]]) -> T:
        client = self._opened()
        settings = self.settings
        started_s = client.clock.monotonic()
        backoff = JitteredBackoff(client.random)
        tries, is_said = 0, False
        while True:
            tries += 1
            try:
                return await question(client)
            except ClientError as error:
                pause_s = max(settings.retry_interval_s, backoff.next_s())
                waited_s = client.clock.monotonic() - started_s
                is_over = waited_s + pause_s >= settings.api_timeout_s or _is_certain(error)
                if not error.is_retriable or (is_over and tries > settings.retries):
                    raise _in_words(error, settings) from error
                if waited_s > SAY_AFTER_S and not is_said:
                    is_said = True
                    _log.warning("still waiting for the brokers: %s", error)
                await client.clock.sleep(pause_s)

    def _opened(self) -> Client:
        if self._client is None:
            self._tasks = LoopTasks()
            self._client = Client(
                self.settings.bootstrap,
                network=TcpNetwork(),
                clock=SystemClock(),
                tasks=self._tasks,
                random=SystemRandom(),
                client_id=self.settings.client_id,
                timeout_s=self.settings.api_timeout_s,
                security=self.settings.security,
            )
        return self._client

    async def _close(self) -> None:
        assert self._client is not None and self._tasks is not None
        await self._client.close()
        await self._tasks.cancel_all()


def _is_certain(error: ClientError) -> bool:
    """A topic that is still unknown, or another one, when asked again: that does not get better with time."""
    return error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def _in_words(error: ClientError, settings: ClientSettings) -> ClientError:
    if isinstance(error, BrokerUnreachable):
        addresses = ", ".join(map(str, settings.bootstrap))
        return BrokerUnreachable(f"no broker of kafka.bootstrap.servers ({addresses}) answers: {error}")
    return error
