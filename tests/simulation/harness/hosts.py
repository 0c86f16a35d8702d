"""The machines of a simulation: brokers, clients, the metadata store. Each has a clock; each process is a ``Life``.

A broker's host keeps its disk, its address and its clock through all lives of its process. What ends a process:

kill            the kernel stays: what was written stays written, connections are reset
power cut       the disk keeps what was synced and a part of the rest, peers hear nothing
crash_at        one of the two before a given operation of the disk, in the middle of whatever is going on
stop            as on SIGTERM
its own end     a failed sync, a failed vital task, a start that fails

Whatever the reason, ``on_end`` is told, and says when the next process starts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from headpond.broker.app import VITAL_TASKS, BrokerApp, Ports
from headpond.client import Client
from headpond.config.broker import BrokerSettings
from headpond.model import BrokerError
from headpond.runtime.tasks import LoopTasks
from headpond.storage.errors import DataFolderUnusable
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import LoopClock
from simulation.harness.disk import SimulatedDisk
from simulation.harness.loop import Dead, Life, SimulatedLoop
from simulation.harness.metastore import SimulatedMetadataStore, StoreServer
from simulation.harness.net import HostNetwork, SimulatedNetwork
from simulation.harness.processes import SimulatedProcesses
from simulation.harness.trace import Op
from simulation.harness.workers import SimulatedWorkers

PORT = 9092
STORE_LATENCY_S = (0.001, 0.002)
WORKER_LATENCY_S = (0.0003, 0.002)
SLOW_JOB_S_MAX = 3.0
"""Of a slow disk: a job that syncs a hundred files must not outlast the healing."""
LATE_JOB_RATE = 0.3
"""How many of a worker's jobs begin later than they were asked for."""
START_FAILURES = (OSError, BrokerError, DataFolderUnusable)
"""What ``serve`` ends with in words; anything else that a start raises is a bug."""


class World(NamedTuple):
    """What all hosts share."""

    loop: SimulatedLoop
    network: SimulatedNetwork
    store: StoreServer
    nemesis: Life
    chance: random.Random
    """For delays of workers and the store, and for what processes draw themselves."""
    trouble: Callable[[str, str], None]
    """``trouble(host, what)``: something that must never happen."""
    note: Callable[[str], None]
    """A line of the readable trace."""


class Host:
    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.machine = world.network.add(name)
        self.clock = LoopClock()
        self.lives = 0
        self.life: Life | None = None

    @property
    def is_up(self) -> bool:
        return self.life is not None and not self.life.is_over

    def pause(self, seconds: float) -> None:
        if self.life is not None and self.is_up:
            self.life.pause(seconds)

    def _begin(self) -> Life:
        self.lives += 1
        self.machine.has_power = True
        self.life = self.world.loop.new_life(f"{self.name}.{self.lives}")
        return self.life

    def _end(self, *, is_silent: bool) -> None:
        if self.life is not None:
            self.life.end()
        self.machine.has_power = not is_silent
        self.world.network.process_ended(self.machine, is_silent=is_silent)

    def _network(self) -> HostNetwork:
        assert self.life is not None
        return HostNetwork(self.world.network, self.machine, self.life)


class ClientHost(Host):
    """A program that uses our client. ``start`` again after ``kill``."""

    def start(self) -> Life:
        life = self._begin()
        self.tasks = LoopTasks(on_failure=lambda name, error: self.world.trouble(self.name, f"{name}: {error!r}"))
        return life

    def client(self, brokers: list[str], *, timeout_s: float) -> Client:
        return Client(
            [(name, PORT) for name in brokers],
            network=self._network(),
            clock=self.clock,
            tasks=self.tasks,
            random=SeededRandom(self.world.chance.getrandbits(64)),
            client_id=self.name,
            timeout_s=timeout_s,
        )

    def kill(self) -> None:
        self._end(is_silent=False)


class BrokerHost(Host):
    def __init__(
        self, world: World, name: str, settings: BrokerSettings, on_end: Callable[[str], float | None]
    ) -> None:
        """``on_end(why)`` says after how many seconds the next process starts; None: not by itself."""
        super().__init__(world, name)
        self.settings = settings
        self.disk = SimulatedDisk(now_ms=self.clock.now_ms)
        self.disk.keeps_trace = False
        self.disk.before_operation = self._before_operation
        self.app: BrokerApp | None = None
        self.is_serving = False
        self._on_end = on_end
        self._store: SimulatedMetadataStore | None = None
        self._store_is_reachable = True
        self._operations_left: int | None = None
        self._operations_counted: tuple[type[Op], ...] = ()
        self._crash: Callable[[], None] = self.kill

    # --- processes

    def start(self) -> None:
        life = self._begin()
        self._tasks = LoopTasks(on_failure=self._task_failed)
        self.app = BrokerApp(self.settings, self._ports(), on_fatal=lambda error: self._exit(f"disk failed: {error}"))
        life.spawn(self._serve(self.app), "serve")

    async def _serve(self, app: BrokerApp) -> None:
        try:
            await app.start()
        except START_FAILURES as error:
            self._exit(f"did not start: {error}")
            return
        except Exception as error:
            self.world.trouble(self.name, f"start failed: {error!r}")
            self._exit(f"did not start: {error!r}")
            return
        self.is_serving = True
        self.world.note(f"{self.name} serves")

    def kill(self) -> None:
        if self.is_up:
            self.disk.kill()
            self._ended("killed", is_silent=False)

    def cut_power(self) -> None:
        if self.is_up:
            self.disk.power_cut(self.world.chance)
            self._ended("power cut", is_silent=True)

    def crash_at(self, operations: int, *, keeps_power: bool, counted: tuple[type[Op], ...] = ()) -> None:
        """Before the disk carries out so many more operations, of these kinds if any are given."""
        self._operations_left = operations
        self._operations_counted = counted
        self._crash = self.kill if keeps_power else self.cut_power

    def heal(self) -> None:
        """No more faults of the disk and the store, and no crash that was planned."""
        self._operations_left = None
        self.disk.faults.heal()
        self.reach_store(True)
        self.stall_watches(False)
        if self._store is not None:
            self._store.answer_all()
        self.clock.run_at(1.0)
        if self.life is not None:
            self.life.paused_until_s = 0.0

    def stop(self) -> None:
        """As on SIGTERM."""
        if self.app is not None and self.life is not None and self.is_serving:
            self.is_serving = False
            self.life.spawn(self._stop(self.app), "stop")

    async def _stop(self, app: BrokerApp) -> None:
        try:
            await app.stop()
        except Exception as error:
            self.world.trouble(self.name, f"stop failed: {error!r}")
        if len(self._tasks):
            self.world.trouble(self.name, f"{len(self._tasks)} tasks outlived the stop")
        self.disk.kill()
        self._ended("stopped", is_silent=False)

    def _exit(self, why: str) -> None:
        """The process ends by itself: in the next turn, so that who calls this is done."""
        self.world.loop.call_on(self.world.nemesis, self.world.loop.time(), self._exited, self.life, why)

    def _exited(self, life: Life | None, why: str) -> None:
        if life is self.life and self.is_up:
            self.disk.kill()
            self._ended(why, is_silent=False)

    def _ended(self, why: str, *, is_silent: bool) -> None:
        self.is_serving = False
        self._operations_left = None
        if self._store is not None:
            self._store.drop()
        self._end(is_silent=is_silent)
        self.world.note(f"{self.name} ended: {why}")
        after_s = self._on_end(why)
        if after_s is not None:
            self.world.loop.call_on(self.world.nemesis, self.world.loop.time() + after_s, self._start_again, self.life)

    def _start_again(self, former: Life) -> None:
        if self.life is former:
            self.start()

    # --- the store

    def reach_store(self, is_reachable: bool) -> None:
        self._store_is_reachable = is_reachable
        if self._store is not None:
            self._store.is_reachable = is_reachable

    def stall_watches(self, is_stalled: bool) -> None:
        if self._store is not None:
            self._store.stall_watches(is_stalled)

    def lose_store_answer(self, *, is_done: bool) -> None:
        if self._store is not None:
            self._store.lose_next_answer("done" if is_done else "not done")

    async def _open_store(self, folder: str) -> SimulatedMetadataStore:
        self._store = SimulatedMetadataStore(self.world.store, self.clock, lambda: self._drawn_s(STORE_LATENCY_S))
        self._store.is_reachable = self._store_is_reachable
        return self._store

    # --- the process' surroundings

    def _ports(self) -> Ports:
        workers = SimulatedWorkers(self.clock, self._answer_delay_s, self._begin_delay_s)
        return Ports(
            clock=self.clock,
            random=SeededRandom(self.world.chance.getrandbits(64)),
            fs=self.disk,
            workers=workers,
            lookers=workers,
            tasks=self._tasks,
            network=self._network(),
            open_store=self._open_store,
            processes=SimulatedProcesses(self.disk, self.clock),
        )

    def _drawn_s(self, latency_s: tuple[float, float]) -> float:
        return latency_s[0] + latency_s[1] * self.world.chance.random()

    def _answer_delay_s(self) -> float:
        slow_s = min(self.disk.faults.take_time(), SLOW_JOB_S_MAX)
        return self._drawn_s(WORKER_LATENCY_S) + (2 * slow_s * self.world.chance.random() if slow_s else 0.0)

    def _begin_delay_s(self) -> float:
        if self.world.chance.random() >= LATE_JOB_RATE:
            return 0.0
        # Of a slow disk a sync may be durable at its end only: what a power cut finds before is as if it had not begun.
        slow_s = 0.0 if self.disk.faults.slow_suffix else self.disk.faults.sync_takes_s
        return self._drawn_s(WORKER_LATENCY_S) + (slow_s * self.world.chance.random() if slow_s else 0.0)

    def _task_failed(self, name: str, error: BaseException) -> None:
        if name in VITAL_TASKS:
            self._exit(f"{name} failed: {error!r}")
        self.world.trouble(self.name, f"task {name} failed: {error!r}")

    def _before_operation(self, op: Op) -> None:
        running = self.world.loop.running
        if running.is_over:
            raise Dead
        is_counted = not self._operations_counted or isinstance(op, self._operations_counted)
        if self._operations_left is not None and running is self.life and is_counted:
            self._operations_left -= 1
            if self._operations_left < 0:
                self._crash()
                raise Dead
