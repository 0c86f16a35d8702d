"""Runs a scenario with the internal client on the real adapters, as the command line does."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from headpond.client import Client, parse_bootstrap
from headpond.runtime.clock import SystemClock
from headpond.runtime.network import TcpNetwork
from headpond.runtime.random import SystemRandom
from headpond.runtime.tasks import LoopTasks

T = TypeVar("T")


def run_with_client(bootstrap: str, scenario: Callable[[Client], Coroutine[Any, Any, T]], **options: Any) -> T:
    """``scenario(client)``; no task may be left behind, and none may have failed."""
    failures: list[tuple[str, BaseException]] = []

    async def main() -> T:
        tasks = LoopTasks(lambda name, error: failures.append((name, error)))
        async with Client(
            parse_bootstrap(bootstrap),
            network=TcpNetwork(),
            clock=SystemClock(),
            tasks=tasks,
            random=SystemRandom(),
            **options,
        ) as client:
            result = await scenario(client)
        await tasks.cancel_all()
        return result

    result = uvloop.run(main())
    assert not failures, failures
    return result
