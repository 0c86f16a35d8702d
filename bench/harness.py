"""The Bench: what every scenario gets. It holds the plan, the tools and the running servers, and notes
what was left out.

Servers are started on first use and kept, so that the JVM stays warm from scenario to scenario; scenarios that crash or
restart servers take one of their own through `fresh`. `close` ends every process that was started, by its id.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .measure import Sample, Samples, interleave
from .servers import KINDS, RECYCLED, CannotStart, Server
from .tools import LoadFailed, Tools
from .wire import RequestFailed

Failures = (LoadFailed, CannotStart, RequestFailed, OSError)


@dataclass(frozen=True)
class Plan:
    """How long and how often; the short one is for a look, its figures are not for the README."""

    quick: bool = False
    repetitions: int = 5
    run_s: float = 5.0
    java_warm_up_s: float = 60.0  # the JIT needs 40-60 s under the load that is measured
    warm_up_s: float = 10.0  # long enough for retention to have begun to give pages back
    crash_load_s: float = 60.0
    idle_s: float = 10.0
    consume_bytes: int = 2_000_000_000
    grown_bytes: int = 10_000_000_000
    primed_bytes: int = 3_000_000_000

    @classmethod
    def short(cls) -> Plan:
        return cls(
            quick=True,
            repetitions=3,
            run_s=2.0,
            java_warm_up_s=15.0,
            warm_up_s=4.0,
            crash_load_s=10.0,
            idle_s=4.0,
            consume_bytes=1_000_000_000,
            grown_bytes=2_000_000_000,
            primed_bytes=1_500_000_000,
        )


class Bench:
    def __init__(self, plan: Plan, tools: Tools, kinds: list[str], data_root: Path, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.tools = tools
        self.kinds = kinds
        self.say = say
        self.left_out: list[str] = []  # of the scenario that is running
        data_root.mkdir(parents=True, exist_ok=True)
        self.data = Path(tempfile.mkdtemp(prefix="data-", dir=data_root))
        self._running: dict[str, Server] = {}
        self._started: set[str] = set()  # these have shown that they can be started here
        self._refused: dict[str, str] = {}
        self._topics = 0

    # -- servers

    def servers(self, *names: str) -> list[str]:
        """Those of the named ones that run, started now if need be; the others are noted as left out."""
        return [name for name in names if name in self.kinds and self._ensure(name)]

    def server(self, name: str) -> Server:
        return self._running[name]

    def alone(self, *names: str) -> list[str]:
        """For scenarios that start servers of their own: the named ones that can be started; none is running."""
        usable = [name for name in names if name in self.kinds and (name in self._started or self._ensure(name))]
        self.release(*list(self._running))
        return usable

    @contextmanager
    def fresh(self, name: str) -> Iterator[Server]:
        """A server of its own, not started, on a new folder that is removed afterwards."""
        self._topics += 1
        server = KINDS[name](self.data / f"{name}-{self._topics}", self.tools)
        try:
            yield server
        finally:
            server.stop()
            server.wipe()

    def release(self, *names: str) -> None:
        """Stops servers that the next scenarios do not need: an idle JVM takes memory and a little CPU."""
        for name in names:
            if server := self._running.pop(name, None):
                server.stop()
                server.wipe()

    def close(self) -> None:
        self.release(*list(self._running))
        shutil.rmtree(self.data, ignore_errors=True)

    def new_topic(self, names: list[str], partitions: int = 4, configs: dict[str, str] | None = None) -> str:
        """A topic of a new name on each server; by default one that gives its pages back (see servers.RECYCLED).

        A server that can't make it is taken off the list of names and noted.
        """
        self._topics += 1
        topic = f"bench-{self._topics}"
        for name in list(names):
            try:
                self.server(name).create_topic(topic, partitions, RECYCLED if configs is None else configs)
            except Failures as failure:
                names.remove(name)
                self.note(f"{name} left out: {failure}")
        return topic

    def disk_free_bytes(self) -> int:
        return shutil.disk_usage(self.data).free

    # -- runs

    def side_by_side(self, names: list[str], load: Callable[[Server, float], Sample]) -> Samples:
        """Warms every server up under the load itself, then runs them in turns. `load(server, seconds)` is one run."""
        self.warm_up(names, load)
        return self.in_turns(names, lambda name: load(self.server(name), self.plan.run_s))

    def warm_up(self, names: list[str], load: Callable[[Server, float], Sample]) -> None:
        prime_page_cache(self.data, self.plan.primed_bytes)
        for name in names:
            seconds = self.plan.java_warm_up_s if name.startswith("kafka") else self.plan.warm_up_s
            self.say(f"    warm-up {name} {seconds:.0f} s")
            self.attempt(name, partial(load, self.server(name), seconds))

    def warm_up_java(self, one_run: Callable[[], Sample]) -> None:
        """For Spark, which gets the time that Kafka gets."""
        end = time.monotonic() + self.plan.java_warm_up_s
        self.say(f"    warm-up {self.plan.java_warm_up_s:.0f} s")
        while self.attempt("warm-up", one_run) is not None and time.monotonic() < end:
            pass

    def in_turns(self, names: list[str], one_run: Callable[[str], Sample]) -> Samples:
        return self.some_runs(names, self.plan.repetitions, one_run)

    def some_runs(self, names: list[str], count: int, one_run: Callable[[str], Sample]) -> Samples:
        """For what takes long and varies little."""
        return interleave(names, count, lambda name: self.attempt(name, partial(one_run, name)), self.say)

    def attempt(self, name: str, action: Callable[[], Sample]) -> Sample | None:
        """One failing run does not end the benchmark; it is reported and leaves no figure."""
        try:
            return action()
        except Failures as failure:
            self.note(f"{name}: a run failed: {failure}")
            return None

    def note(self, text: str) -> None:
        self.say(f"    ! {text}")
        if text not in self.left_out:
            self.left_out.append(text)

    def _ensure(self, name: str) -> bool:
        if (server := self._running.get(name)) and server.process and server.process.poll() is None:
            return True
        if name not in self._refused:
            server = KINDS[name](self.data / name, self.tools)
            try:
                self.say(f"    starting {server.title}")
                server.start()
                self._running[name] = server
                self._started.add(name)
                return True
            except Failures as failure:
                server.stop()
                self._refused[name] = str(failure)
        self.note(f"{name} left out: {self._refused[name]}")
        return False


@contextmanager
def watched(server: Server) -> Iterator[dict[str, float]]:
    """Fills in the server's CPU seconds, its memory and the wall time of the block."""
    used: dict[str, float] = {}
    cpu_before, started = server.cpu_s(), time.monotonic()
    yield used
    used["seconds"] = time.monotonic() - started
    used["cpu_s"] = server.cpu_s() - cpu_before
    used["rss_mb"] = server.rss_mb()


def prime_page_cache(folder: Path, size_bytes: int) -> None:
    """Fills page cache and gives it back, so that the runs find pages that the (virtual) machine really has.

    A virtual machine gets its memory page by page on first use, which costs far more than a broker's own work; whoever
    ran first would pay for all. Removed before it is written out, so the disk sees little of it.
    """
    path = folder / "primer"
    block = bytes(1_000_000)
    with path.open("wb", buffering=0) as file:
        for _ in range(size_bytes // len(block)):
            file.write(block)
    path.unlink()


def filesystem_of(path: Path) -> str:
    """The type of the file system that holds the path, e.g. ext4; a bench of a durable log on tmpfs says nothing."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mounted_at, mounted_kind = line.split()[:3]
        inside = os.path.commonpath([mounted_at, path.resolve()]) == mounted_at
        if inside and len(mounted_at) >= len(best):
            best, kind = mounted_at, mounted_kind
    return kind
