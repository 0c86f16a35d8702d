"""A broker as a real process: what users run, started, stopped and killed by tests.

Every process is ended by its own pid: by the fixture that made it, at the interpreter's exit if a test forgot, and
(where ``setpriv`` exists) by the kernel if the test run itself is killed.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.waiting import DEADLINE_S, eventually

SOURCE = Path(__file__).resolve().parents[2] / "src"
READY = re.compile(r"listening on (?:\[?[\w.:]*?\]?):(\d+)\b")

_alive: dict[int, subprocess.Popen[bytes]] = {}


@atexit.register
def _end_what_was_forgotten() -> None:
    for process in list(_alive.values()):
        if process.poll() is None:
            process.kill()
            process.wait()


class StartFailed(AssertionError):
    """The process ended before it said that it was ready."""


def penstock_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "penstock", *arguments]


def penstock_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without settings that would leak into the broker; the source tree is importable."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    paths = [str(SOURCE), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", **(extra or {})}


def run_penstock(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """One command to its end, for those that end by themselves (``config``, a refused ``serve``)."""
    return subprocess.run(
        penstock_command(*arguments),
        env=penstock_environment(env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


class BrokerProcess:
    """``penstock serve`` on a free port of the loopback interface, with its data under ``folder``."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, object] | None = None,
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.settings = dict(settings or {})
        self.arguments = list(arguments)
        self.env = dict(env or {})
        self.port = port
        self._requested_port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was never started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def command(self) -> list[str]:
        listen = f"127.0.0.1:{self._requested_port}"
        sets = [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]
        serve = penstock_command("serve", "--listen", listen, "--data-dir", str(self.data_dir), *sets, *self.arguments)
        setpriv = shutil.which("setpriv")
        return [setpriv, "--pdeathsig", "KILL", *serve] if setpriv else serve

    def start(self, *, wait_ready: bool = True) -> BrokerProcess:
        assert not self.is_running, "already running"
        self._starts += 1
        with self._output("stdout").open("wb") as out, self._output("stderr").open("wb") as err:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=penstock_environment(self.env)
            )
        _alive[self.pid] = self._process
        if wait_ready:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        def ready() -> re.Match[str] | None:
            found = READY.search(self.stdout())
            if found is None and not self.is_running:
                raise StartFailed(f"exit code {self._process and self._process.returncode}\n{self.logs()}")
            return found

        self.port = int(eventually(ready, what=lambda: f"the ready line\n{self.logs()}").group(1))

    def stop(self, *, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """End it the polite way; anything but exit code 0 fails the test that asked."""
        assert self._process is not None
        if self.is_running:
            self._process.send_signal(with_signal)
        code = self.wait_exit()
        assert code == 0, f"exit code {code} after {with_signal.name}\n{self.logs()}"

    def kill(self) -> None:
        """SIGKILL: nothing of the broker's own gets a chance to run."""
        if self._process is not None and self.is_running:
            self._process.kill()
            self.wait_exit()

    def wait_exit(self, deadline_s: float = DEADLINE_S) -> int:
        assert self._process is not None
        try:
            code = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {deadline_s} s\n{self.logs()}") from None
        _alive.pop(self._process.pid, None)
        return code

    def restart(self, *, kill: bool = False, same_port: bool = False) -> BrokerProcess:
        """Down (politely, or with SIGKILL) and up again on the same data; clients that stay want ``same_port``."""
        if kill:
            self.kill()
        elif self.is_running:
            self.stop()
        if same_port:
            self._requested_port = self.port
        return self.start()

    def stdout(self) -> str:
        return self._read("stdout")

    def logs(self) -> str:
        """Everything that this start of the process wrote, both streams."""
        return self._read("stdout") + self._read("stderr")

    def rss_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024  # type: ignore[union-attr]

    def log_folder(self, topic: str, partition: int = 0) -> Path:
        """Where the partition's files lie. The data folder is Kafka's, so the name is too."""
        return next(self.data_dir.rglob(f"{topic}-{partition}"))

    def _output(self, stream: str) -> Path:
        return self.folder / f"{stream}-{self._starts}.log"

    def _read(self, stream: str) -> str:
        path = self._output(stream)
        return path.read_text(errors="replace") if path.exists() else ""
