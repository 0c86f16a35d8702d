"""The faults of a run, as data: what happens when, to whom and for how long.

A plan is drawn before the run from a stream of its own, so that leaving out one fault changes no other: that is what
lets ``shrink`` take a failing plan apart. Each kind knows how to begin and how to end; ``str`` of a fault is Python
that makes it again, so that a failing plan can be put into a regression test as it is printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from simulation.harness.trace import (
    Created,
    DirectorySynced,
    EverythingSynced,
    Op,
    Removed,
    Renamed,
    Synced,
    Truncated,
    Wrote,
)

if TYPE_CHECKING:
    from simulation.stage import Stage

RESTART_S = 0.3
COUNTED: dict[str, tuple[type[Op], ...]] = {
    "": (),
    "sync": (Synced, EverythingSynced),
    "write": (Wrote, Truncated),
    "name": (Created, Renamed, Removed, DirectorySynced),
}
"""Operations of the disk before which it may crash."""


class Kill(NamedTuple):
    """kill -9; the next process starts after a while."""

    at_s: float
    after_s: float = RESTART_S

    def strike(self, stage: Stage) -> None:
        stage.restart_after_s = self.after_s
        stage.broker.kill()


class PowerCut(NamedTuple):
    at_s: float
    after_s: float = RESTART_S

    def strike(self, stage: Stage) -> None:
        stage.restart_after_s = self.after_s
        stage.broker.cut_power()


class CrashAtOperation(NamedTuple):
    """A kill or a power cut before one of the disk's next operations, wherever the broker is then. ``only``: before one
    of its next syncs, writes or changes of names. A power cut at any moment finds little that is not synced yet."""

    at_s: float
    operations: int
    keeps_power: bool
    only: str = ""

    def strike(self, stage: Stage) -> None:
        stage.restart_after_s = RESTART_S
        stage.broker.crash_at(self.operations, keeps_power=self.keeps_power, counted=COUNTED[self.only])


class Stop(NamedTuple):
    """SIGTERM, then a new start."""

    at_s: float
    after_s: float = RESTART_S

    def strike(self, stage: Stage) -> None:
        stage.restart_after_s = self.after_s
        stage.broker.stop()


class Pause(NamedTuple):
    """SIGSTOP for a while: the broker, or a client."""

    at_s: float
    host: str
    seconds: float

    def strike(self, stage: Stage) -> None:
        stage.host(self.host).pause(self.seconds)


class KillClient(NamedTuple):
    at_s: float
    host: str
    after_s: float = RESTART_S

    def strike(self, stage: Stage) -> None:
        stage.kill_client(self.host, self.after_s)


class Cut(NamedTuple):
    """A link in one direction."""

    at_s: float
    source: str
    target: str
    seconds: float

    def strike(self, stage: Stage) -> None:
        stage.network.cut(self.source, self.target)
        stage.later(self.seconds, lambda: stage.network.mend(self.source, self.target))


class Stall(NamedTuple):
    """The connections that there are, in one direction; new ones work. What was sent on the old ones comes late."""

    at_s: float
    source: str
    target: str
    seconds: float

    def strike(self, stage: Stage) -> None:
        stage.later(self.seconds, stage.network.stall(self.source, self.target))


class SlowLink(NamedTuple):
    at_s: float
    source: str
    target: str
    seconds: float
    latency_s: float

    def strike(self, stage: Stage) -> None:
        stage.network.slow(self.source, self.target, self.latency_s)
        stage.later(self.seconds, lambda: stage.network.slow(self.source, self.target, 0.0))


class ClockJump(NamedTuple):
    """The wall clock of a host, there and back."""

    at_s: float
    host: str
    milliseconds: int
    seconds: float

    def strike(self, stage: Stage) -> None:
        clock = stage.host(self.host).clock
        clock.wall_offset_ms += self.milliseconds

        def back() -> None:
            clock.wall_offset_ms -= self.milliseconds

        stage.later(self.seconds, back)


class ClockDrift(NamedTuple):
    at_s: float
    host: str
    rate: float
    seconds: float

    def strike(self, stage: Stage) -> None:
        clock = stage.host(self.host).clock
        clock.run_at(self.rate)
        stage.later(self.seconds, lambda: clock.run_at(1.0))


class SlowDisk(NamedTuple):
    """``only``: files whose names end so, those of logs say, which have more to write than others."""

    at_s: float
    sync_takes_s: float
    seconds: float
    only: str = ""

    def strike(self, stage: Stage) -> None:
        faults = stage.broker.disk.faults
        faults.sync_takes_s, faults.slow_suffix = self.sync_takes_s, self.only

        def back() -> None:
            faults.sync_takes_s, faults.slow_suffix = 0.0, ""

        stage.later(self.seconds, back)


class FullDisk(NamedTuple):
    at_s: float
    space_bytes: int
    seconds: float

    def strike(self, stage: Stage) -> None:
        stage.broker.disk.faults.space_bytes = self.space_bytes

        def back() -> None:
            stage.broker.disk.faults.space_bytes = None

        stage.later(self.seconds, back)


class FailedSync(NamedTuple):
    """The next sync fails: its pages are lost (fsyncgate), and the broker must end."""

    at_s: float

    def strike(self, stage: Stage) -> None:
        stage.restart_after_s = RESTART_S
        stage.broker.disk.faults.fail_next_syncs()


class FailedWrite(NamedTuple):
    at_s: float
    after_bytes: int

    def strike(self, stage: Stage) -> None:
        stage.broker.disk.faults.fail_next_write(after_bytes=self.after_bytes)


class ColdCache(NamedTuple):
    """Reads must wait for the disk, once for each file."""

    at_s: float

    def strike(self, stage: Stage) -> None:
        stage.broker.disk.faults.make_cold("")


class RottenIndex(NamedTuple):
    """A bit of an index file flips, and the process ends: an index is a hint that nothing may depend on."""

    at_s: float
    choice: int

    def strike(self, stage: Stage) -> None:
        stage.restart_after_s = RESTART_S
        stage.broker.kill()
        stage.rot_an_index(self.choice)


class StoreOutage(NamedTuple):
    at_s: float
    seconds: float

    def strike(self, stage: Stage) -> None:
        stage.broker.reach_store(False)
        stage.later(self.seconds, lambda: stage.broker.reach_store(True))


class StoreLeaderChange(NamedTuple):
    """Out of reach for a moment, then every lease has its whole time again."""

    at_s: float
    seconds: float

    def strike(self, stage: Stage) -> None:
        stage.broker.reach_store(False)

        def elected() -> None:
            stage.store.prolong_leases()
            stage.broker.reach_store(True)

        stage.later(self.seconds, elected)


class LostStoreAnswer(NamedTuple):
    at_s: float
    is_done: bool

    def strike(self, stage: Stage) -> None:
        stage.broker.lose_store_answer(is_done=self.is_done)


class SilentWatch(NamedTuple):
    """Watches say nothing for a while; ``forgets``: history is compacted away meanwhile."""

    at_s: float
    seconds: float
    forgets: bool

    def strike(self, stage: Stage) -> None:
        stage.broker.stall_watches(True)

        def back() -> None:
            if self.forgets:
                stage.store.compact(stage.store.revision)
            stage.broker.stall_watches(False)

        stage.later(self.seconds, back)


Fault = (
    Kill
    | PowerCut
    | CrashAtOperation
    | Stop
    | Pause
    | KillClient
    | Cut
    | Stall
    | SlowLink
    | ClockJump
    | ClockDrift
    | SlowDisk
    | FullDisk
    | FailedSync
    | FailedWrite
    | ColdCache
    | RottenIndex
    | StoreOutage
    | StoreLeaderChange
    | LostStoreAnswer
    | SilentWatch
)
