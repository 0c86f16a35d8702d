"""``headpond.log.open``: arguments in, an open ``Log`` out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from headpond.cluster.names import name_problem
from headpond.log.engine import started
from headpond.log.log import Log
from headpond.log.settings import Flush, LogSettings
from headpond.log.world import Machine, World
from headpond.runtime.environment import absolute_path
from headpond.runtime.loop_thread import LoopThread


@runtime_checkable
class PathLike(Protocol):
    """A ``pathlib.Path``, say, which is not imported for it."""

    def __fspath__(self) -> str: ...


def open(
    path: str | PathLike,
    *,
    name: str | None = None,
    segment_bytes: int = 1_073_741_824,
    index_interval_bytes: int = 4_096,
    flush: Flush = "ack",
    retention_ms: int | None = None,
    retention_bytes: int | None = None,
) -> Log:
    """Open the log in the folder ``path``, which is made if it is missing, and recover it if it was not closed.

    name            of the log, and of the topic that ``headpond adopt`` makes of it; the folder's name if not given
    segment_bytes   a new file begins when one has grown to this
    index_interval_bytes   an index entry leads to a batch every so many bytes
    flush           when ``append`` returns, and what can be read. "ack": durable, after an fsync shared by all threads;
                    "interval": written, synced once a second; "os": written, synced when the system likes. With the
                    last two a power cut loses the newest records, a kill of the process none
    retention_ms, retention_bytes   older segments, and those beyond so many bytes, are removed every five minutes

    One process at a time. Raises ``LogInUse``, ``LogUnusable``, ``TypeError``, ``ValueError``.
    """
    settings = LogSettings(segment_bytes, index_interval_bytes, flush, retention_ms, retention_bytes)
    if not isinstance(path, str | PathLike):
        raise TypeError(f"the path is a {type(path).__name__}: it should be a str or a Path")
    return open_in(Machine, absolute_path(path if isinstance(path, str) else path.__fspath__()), name, settings)


def open_in(make_world: Callable[[], World], path: str, name: str | None, settings: LogSettings) -> Log:
    """The same in any world."""
    settings.check()
    path = path.rstrip("/") or "/"
    if name is None:
        name = path.rpartition("/")[2]
    problem = name_problem(name)
    if problem is not None:
        raise ValueError(f"the log can't be called {name!r}: {problem}")
    thread = LoopThread(f"headpond log {name}")
    return Log(started(path, name, settings, make_world, thread), thread)
