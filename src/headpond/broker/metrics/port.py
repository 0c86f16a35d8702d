"""The metrics port of a running broker: ``--metrics-listen``. Imported only where it is wanted.

Open from before recovery until the clients' connections are closed, so that a probe can tell a broker that is starting
(alive, not ready) from one that is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.broker.metrics.metrics import Facts, Observed, Space, sources
from headpond.config.broker import MetricsSettings
from headpond.ports import Network, ProcessFacts, Tasks, Workers
from headpond.telemetry.endpoint import MetricsEndpoint
from headpond.telemetry.families import Registry
from headpond.telemetry.looked_up import LookedUp
from headpond.telemetry.loop_watch import LoopWatch


class Observability:
    def __init__(
        self,
        observed: Observed,
        *,
        network: Network,
        tasks: Tasks,
        workers: Workers,
        look_at_process: Callable[[], ProcessFacts],
        look_at_disk: Callable[[], Space],
    ) -> None:
        clock = observed.clock
        self._observed = observed
        self._facts = Facts(
            process=LookedUp(look_at_process, clock, workers),
            space=LookedUp(look_at_disk, clock, workers),
            loop=LoopWatch(clock),
        )
        registry = Registry()
        self._endpoint = MetricsEndpoint(
            network=network,
            clock=clock,
            tasks=tasks,
            registry=registry,
            before_scrape=self._before_scrape,
            unhealthy=self._unhealthy,
            unready=observed.unready,
        )
        for family, source in sources(observed, self._facts, self._endpoint.scrape_failures):
            registry.add(family, source)

    async def listen(self, settings: MetricsSettings) -> tuple[str, int]:
        """Returns the address; the port that was chosen, if it was to be."""
        port = await self._endpoint.listen(settings.host, settings.port)
        self._facts.loop.start()
        return settings.host, port

    async def close(self) -> None:
        self._facts.loop.stop()
        await self._endpoint.close()

    async def _before_scrape(self) -> None:
        await self._facts.process.refresh()
        await self._facts.space.refresh()
        self._observed.requests.rearm(self._observed.clock.monotonic())

    def _unhealthy(self) -> str | None:
        failed = self._observed.logs.commits.failed
        return None if failed is None else f"the data folder failed: {failed}"
