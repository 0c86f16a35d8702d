"""Files that are no longer needed, removed in a worker after a delay: readers that have them open may read on.

What a crash or a shutdown leaves of them, the next start removes.
"""

from __future__ import annotations

import logging

from headpond.ports import Clock, FileSystem, TimerHandle, Workers

_log = logging.getLogger(__name__)


class Removals:
    def __init__(self, fs: FileSystem, clock: Clock, workers: Workers) -> None:
        self._fs = fs
        self._clock = clock
        self._workers = workers
        self._timers: dict[TimerHandle, None] = {}

    def later(self, paths: list[str], delay_ms: int) -> None:
        if not paths:
            return

        def due() -> None:
            self._timers.pop(timer, None)
            self._workers.submit(lambda: _remove(self._fs, paths), _report)

        timer = self._clock.call_later(delay_ms / 1_000, due)
        self._timers[timer] = None

    def stop(self) -> None:
        """What is not due yet stays for the next start."""
        for timer in self._timers:
            timer.cancel()


def _remove(fs: FileSystem, paths: list[str]) -> None:
    """Blocking."""
    for path in paths:
        if fs.is_dir(path):
            fs.remove_tree(path)
        elif fs.is_dir(path.rpartition("/")[0]):  # its partition may have been deleted meanwhile
            fs.remove(path)


def _report(_: None, error: BaseException | None) -> None:
    if error is not None:
        _log.warning("deleted files could not be removed; the next start tries again: %s", error)
