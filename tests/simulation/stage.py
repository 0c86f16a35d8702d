"""One run: a broker, its clients, the faults; a phase for safety, healing, a phase for liveness, a last look.

setup       the broker starts, the topics are made, without faults
safety      workloads work, faults strike; nothing is asked but that no promise is broken
healing     every fault ends
liveness    each workload must get something done within ``LIVENESS_S``, and everything must come to rest
last look   logs are read by a client, the broker is restarted and asked again, stopped, and its disk is read

Nothing here decides what is right: that is for ``checkers``, who get the ``History``.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from functools import cache
from typing import NamedTuple

from headpond.client.admin import Admin
from headpond.config.broker import BrokerSettings
from headpond.config.sources import load
from headpond.model.ids import id_text
from simulation.faults import Fault
from simulation.final import DATA_DIR, LastLook, entry_at
from simulation.harness.chance import stream
from simulation.harness.clock import LoopClock
from simulation.harness.hosts import BrokerHost, ClientHost, Host, World
from simulation.harness.loop import SimulatedLoop, Stuck
from simulation.harness.metastore import StoreServer
from simulation.harness.net import SimulatedNetwork
from simulation.history import AdminChange, History, Trouble
from simulation.plan import Options
from simulation.probes import Probes, alarms, answers_in_order
from simulation.site import Site
from simulation.workloads import WORKLOADS

LIVENESS_S = 30.0
"""Virtual seconds after the last fault until everything must be well; clients' own time-outs are some of them."""
WORK_ON_S = 2.0
"""How long workloads go on after healing, at least."""
LAST_LOOK_S = 30.0
UNTIL_S = 200.0


class Run(NamedTuple):
    """What came of it."""

    history: History
    notes: list[str]
    trace: int
    events: int
    virtual_s: float


def play(seed: int, options: Options, plan: tuple[Fault, ...]) -> Run:
    """The same arguments give the same run, event for event."""
    return perform(Stage(seed, options, plan))


def perform(stage: Stage) -> Run:
    was_collecting = gc.isenabled()
    gc.disable()  # see harness/loop.py
    try:
        try:
            with alarms(stage.trouble), answers_in_order(stage.trouble):
                stage.loop.run(stage.main(), until_s=UNTIL_S)
        except Stuck as error:
            stage.history.unconverged.append(f"stuck: {error}")
        stage.collect_errors()
        return Run(stage.history, stage.notes, stage.loop.trace, stage.loop.events, stage.loop.time())
    finally:
        if was_collecting:
            gc.enable()


class Stage:
    def __init__(self, seed: int, options: Options, plan: tuple[Fault, ...]) -> None:
        self.options = options
        self.history = History()
        self.notes: list[str] = []
        self.loop = SimulatedLoop(stream(seed, "order"))
        self.network = SimulatedNetwork(self.loop, stream(seed, "network"))
        self.store = StoreServer(LoopClock(life=self.loop.new_life("store")))
        self.restart_after_s = 0.0
        self._seed = seed
        self._plan = plan
        self._nemesis = self.loop.new_life("nemesis")
        self._is_healed = False
        self._is_over = False
        self._to_undo: dict[int, Callable[[], None]] = {}
        world = World(
            self.loop, self.network, self.store, self._nemesis, stream(seed, "hosts"), self.trouble, self.note
        )
        self.broker = BrokerHost(world, "b1", _settings(options), self._broker_ended)
        self._clients = {f"c-{name}": Program(self, name, world) for name in options.workloads}
        self._observer = ClientHost(world, "observer")

    # --- for faults

    def host(self, name: str) -> Host:
        return self.broker if name == "b1" else self._clients[name].host

    def kill_client(self, name: str, after_s: float) -> None:
        self._clients[name].kill(after_s)

    def later(self, seconds: float, undo: Callable[[], None]) -> None:
        """The end of a fault: then, or at healing."""
        number = self.loop.next_number()
        self._to_undo[number] = undo
        self.loop.call_on(self._nemesis, self.loop.time() + seconds, self._undo, number)

    def rot_an_index(self, choice: int) -> None:
        disk = self.broker.disk
        found = sorted(path for path in disk.paths() if path.endswith((".index", ".timeindex")) and disk.contents(path))
        if found:
            path = found[choice % len(found)]
            position = choice // 7 % len(disk.contents(path))
            disk.flip_bit(path, position, choice % 8)
            self.history.rotten_entries.add((path, entry_at(path, disk.contents(path), position)))
            self.note(f"rotten: {path} at {position}")

    def _undo(self, number: int) -> None:
        undo = self._to_undo.pop(number, None)
        if undo is not None:
            undo()

    # --- the run

    async def main(self) -> None:
        """On the driver's life; phases one after the other."""
        Probes(self.broker, self.history)
        self.broker.start()
        await self._until(lambda: self.broker.is_serving, 10.0, "the broker serves at the beginning")
        self._observer.start()
        await self._set_up()
        for program in self._clients.values():
            program.start()
        for fault in self._plan:
            self.loop.call_on(self._nemesis, self.loop.time() + fault.at_s, self._strike, fault)
        await asyncio.sleep(self.options.safety_s)
        self._heal()
        await asyncio.sleep(WORK_ON_S)
        await self._until(self._all_succeeded, LIVENESS_S, lambda: f"progress after healing of {self._behind()}")
        self._is_over = True
        await self._until(self._all_ended, LIVENESS_S, lambda: f"an end of {self._unended()}")
        await self._look()

    async def _set_up(self) -> None:
        done = self.loop.create_future()
        assert self._observer.life is not None
        self._observer.life.spawn(self._make_topics(done), "make topics")
        await done

    async def _make_topics(self, done: asyncio.Future[None]) -> None:
        async with self._observer.client(["b1"], timeout_s=5) as client:
            admin = Admin(client)
            for name, partitions, configs, _ in self.options.topics:
                change = AdminChange(process="setup", invoked_s=self.loop.time(), kind="create", topic=name)
                self.history.operations.append(change)
                await admin.create_topic(name, partitions, 1, dict(configs))
                change.topic_id = id_text((await client.metadata([name])).topics[name].topic_id)
                change.partitions, change.configs = partitions, configs
                change.outcome, change.ended_s = "ok", self.loop.time()
        done.set_result(None)

    def _strike(self, fault: Fault) -> None:
        if not self._is_healed:
            self.note(f"fault {fault}")
            fault.strike(self)

    def _heal(self) -> None:
        self._is_healed = True
        self.history.healed_s = self.loop.time()
        for number in sorted(self._to_undo):
            self._undo(number)
        self.network.heal()
        self.broker.heal()
        self.note("healed")

    def _broker_ended(self, why: str) -> float:
        return self.restart_after_s or 0.3

    # --- waiting

    async def _until(self, holds: Callable[[], bool], seconds: float, what: str | Callable[[], str]) -> bool:
        until_s = self.loop.time() + seconds
        while not holds():
            if self.loop.time() > until_s:
                self.history.unconverged.append(what if isinstance(what, str) else what())
                return False
            await asyncio.sleep(0.05)
        return True

    def _all_succeeded(self) -> bool:
        return self.broker.is_serving and not self._behind()

    def _behind(self) -> str:
        return ", ".join(name for name, each in self._clients.items() if not each.has_succeeded)

    def _all_ended(self) -> bool:
        return not self._unended()

    def _unended(self) -> str:
        return ", ".join(name for name, each in self._clients.items() if not each.has_ended)

    async def _look(self) -> None:
        done: asyncio.Future[None] = self.loop.create_future()
        look = LastLook(self.broker, self._observer, self.history, self.options)
        assert self._observer.life is not None
        self._observer.life.spawn(_finish(look.run(), done), "last look")
        if await self._until(done.done, LAST_LOOK_S, "the last look") and (error := done.exception()) is not None:
            self.history.unconverged.append(f"the last look failed: {error!r}")

    # --- for all

    def trouble(self, host: str, what: str) -> None:
        if self.loop.is_over:  # coroutines of dead processes are being closed
            return
        self.history.troubles.append(Trouble(self.loop.time(), host, what))
        self.note(f"TROUBLE at {host}: {what}")

    def note(self, line: str) -> None:
        self.notes.append(f"{self.loop.time():9.4f}  {line}")

    @property
    def is_over(self) -> bool:
        return self._is_over

    @property
    def is_healed(self) -> bool:
        return self._is_healed

    def site(self, name: str, host: ClientHost, life: int) -> Site:
        return Site(
            host,
            self.history,
            self.options.topics,
            stream(self._seed, f"{name}.{life}"),
            name=name,
            life=life,
            is_over=lambda: self._is_over,
            is_healed=lambda: self._is_healed,
        )

    def start_later(self, seconds: float, start: Callable[[], None]) -> None:
        self.loop.call_on(self._nemesis, self.loop.time() + seconds, start)

    def collect_errors(self) -> None:
        for error in self.loop.errors:
            self.history.troubles.append(Trouble(error.at_s, error.life, f"{error.what}: {error.error!r}"))


class Program:
    """One workload on its host, started again whenever it is killed."""

    def __init__(self, stage: Stage, name: str, world: World) -> None:
        self.host = ClientHost(world, f"c-{name}")
        self.has_ended = False
        self._stage = stage
        self._name = name
        self._site: Site | None = None

    @property
    def has_succeeded(self) -> bool:
        return self._site is not None and self._site.succeeded_healed > 0

    def start(self) -> None:
        life = self.host.start()
        self._site = self._stage.site(self._name, self.host, self.host.lives)
        life.spawn(self._run(self._site), self._name)

    def kill(self, after_s: float) -> None:
        if self.host.is_up and not self.has_ended:
            self.host.kill()
            self._stage.start_later(after_s, self.start)

    async def _run(self, site: Site) -> None:
        try:
            await WORKLOADS[self._name](site)
        except Exception as error:
            self._stage.trouble(self.host.name, f"the workload failed: {error!r}")
        if len(self.host.tasks):
            await self.host.tasks.cancel_all()
        self.has_ended = True


async def _finish(work: Awaitable[None], done: asyncio.Future[None]) -> None:
    try:
        await work
    except Exception as error:
        done.set_exception(error)
    else:
        done.set_result(None)


@cache
def _settings(options: Options) -> BrokerSettings:
    sets = [f"{name}={value}" for name, value in options.settings]
    flags = {"listen": "b1:9092", "advertise": "b1:9092", "data-dir": DATA_DIR, "broker-id": "1"}
    return load(flags, sets, {}, lambda path: b"", hostname="b1").settings
