"""The broker that users get from ``headpond.testing``, with what only our own tests need: its folder stays, its exit
code and its memory are looked at, and it may be started wrongly on purpose.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from headpond.testing.broker import Broker
from headpond.testing.command import headpond_command, headpond_environment
from headpond.testing.errors import StartFailed
from headpond.testing.guard import Guard
from support.waiting import DEADLINE_S

__all__ = ["BrokerProcess", "StartFailed", "headpond_command", "headpond_environment", "run_headpond", "serving"]

BUGS = re.compile(r"Traceback|Fatal error")
"""What a broker's log never says: a bug of ours, or what the event loop says of one."""


def run_headpond(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """One command to its end, for those that end by themselves (``config``, a refused ``serve``)."""
    return subprocess.run(
        headpond_command(*arguments),
        env=headpond_environment(env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


class BrokerProcess(Broker):
    """``headpond serve`` on a free port of the loopback interface, with its data under ``folder``.

    ``wrapper``: a command that gets the broker's as its last arguments, and becomes it.
    """

    DEFAULTS: ClassVar[Mapping[str, object]] = {}  # Kafka's own: they are what is under test

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder=folder, **options)
        self.wrapper: list[str] = []
        self._data_dir = folder / "data"
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def data_dir(self) -> Path:
        return self._data_dir

    @data_dir.setter
    def data_dir(self, elsewhere: Path) -> None:
        self._data_dir = elsewhere

    def start(self, *, wait_ready: bool = True) -> Self:
        """``wait_ready=False``: for a start that is expected to fail."""
        if wait_ready:
            return super().start()
        self._launch()
        return self

    def stop(self, *, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """End it the polite way; anything but exit code 0 fails the test that asked."""
        assert self._process is not None, "nothing to stop"
        self._end_with(with_signal)

    def wait_exit(self, deadline_s: float = DEADLINE_S) -> int:
        """The exit code of a broker that ends by itself."""
        assert self._process is not None
        try:
            return self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {deadline_s} s\n{self.logs()}") from None

    def stdout(self) -> str:
        return self._written("stdout")

    def _command(self, guard: Guard) -> list[str]:
        return [*self.wrapper, *super()._command(guard)]

    def rss_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024  # type: ignore[union-attr]

    def log_folder(self, topic: str, partition: int = 0) -> Path:
        """Where the partition's files lie. The data folder is Kafka's, so the name is too."""
        return next(self.data_dir.rglob(f"{topic}-{partition}"))


@contextmanager
def serving(process: BrokerProcess) -> Iterator[BrokerProcess]:
    """Started, and stopped in the end; for one that many tests share."""
    try:
        yield process.start()
        process.stop()
        # Whatever the tests did to it: a request that meets a bug costs its connection, and this.
        assert not BUGS.search(process.logs()), process.logs()
    finally:
        process.close()
