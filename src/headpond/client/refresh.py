"""Asks anew who leads, for a reader or a producer whose requests were sent to the wrong broker.

One question at a time, however many partitions moved meanwhile; after one without an answer, a pause. It never gives
up: how long to go on is for those who want the answer to know.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from headpond.client.client import Client
from headpond.client.errors import ClientError
from headpond.client.waiting import JitteredBackoff


class Refresh:
    def __init__(self, client: Client, timeout_s: float, wake: Callable[[], None]) -> None:
        self._client = client
        self._timeout_s = timeout_s
        self._wake = wake
        self._backoff = JitteredBackoff(client.random)
        self._stale: set[str] = set()
        self._is_asking = False

    def want(self, topic: str) -> None:
        self._stale.add(topic)

    def work(self) -> Coroutine[Any, Any, None] | None:
        """What is to be run now, if anything; ``wake`` is called at its end."""
        if not self._stale or self._is_asking:
            return None
        self._is_asking = True
        return self._ask()

    async def _ask(self) -> None:
        topics, self._stale = sorted(self._stale), set()
        try:
            await self._client.metadata(topics, self._timeout_s)
            self._backoff.reset()
        except ClientError:
            self._stale.update(topics)
            await self._client.clock.sleep(self._backoff.next_s())
        finally:
            self._is_asking = False
            self._wake()
