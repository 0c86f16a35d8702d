"""A progress bar on stderr for what may take over a second: on a terminal only, and only once it has taken a while.

What ends within ``PATIENCE_S`` shows nothing and never imports rich.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from headpond.cli.common.printable import printable
from headpond.ports import Clock
from headpond.runtime.clock import SystemClock

PATIENCE_S = 0.5
REFRESH_S = 0.1


class Progress:
    """``with Progress("Reading", total) as bar: bar.advance(n)``. ``total`` None: only a count and a rate.

    ``unit``: "bytes", or "tasks", whose length nobody knows: the time that has gone by instead of the one to come.
    ``is_wanted``: give False where stdout is a terminal that records go to: lines and a bar don't mix.
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        unit: str = "",
        is_wanted: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._clock = clock or SystemClock()
        self.is_wanted = is_wanted and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self._done = 0
        self._next_s = 0.0

    def __enter__(self) -> Self:
        self._next_s = self._clock.monotonic() + PATIENCE_S
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._draw(self._what)
            self._bar.stop()

    def advance(self, count: int, what: str | None = None) -> None:
        if what is not None:
            self._what = what
        self.stand_at(self._done + count, self._total)

    def stand_at(self, done: int, total: int | None) -> None:
        """For work whose end moves while it is done."""
        self._done, self._total = done, total
        if not self.is_wanted:
            return
        now_s = self._clock.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + REFRESH_S
            self._draw(self._what)

    def _draw(self, what: str) -> None:
        if self._bar is None:
            self._start()
        self._bar.tasks[0].total = self._total  # `update` takes None for "as it was"
        self._bar.update(self._task, completed=self._done, description=printable(what), refresh=True)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            ProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as Bar

        rest: tuple[ProgressColumn, ...] = (MofNCompleteColumn(), TimeRemainingColumn())
        if self._unit == "bytes":
            rest = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        elif self._unit == "tasks":
            rest = (MofNCompleteColumn(), TextColumn("tasks"), TimeElapsedColumn())
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), *rest)
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._bar.start()
        self._task = self._bar.add_task(printable(self._what), total=self._total)
