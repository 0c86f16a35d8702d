"""A program of ours that uses a client library, as a child process: to be killed, frozen and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Self

from support.waiting import DEADLINE_S

FOLDER = Path(__file__).parent


class JobProcess:
    """``script`` of this folder with ``arguments``. It ends by itself when its stdin does: with us at the latest."""

    def __init__(self, script: str, arguments: list[str], output: Path) -> None:
        self._command = [sys.executable, str(FOLDER / script), *arguments]
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None
        self.is_frozen = False

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def stdin(self) -> IO[bytes]:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Of one that was started with a pipe there."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout

    def start(self, **options: Any) -> Self:
        self.is_frozen = False
        # An interrupt of the run is for pytest, which ends this one by closing its stdin.
        with open(self._output, "ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stderr=output, start_new_session=True,
                **{"stdout": output, **options},
            )  # fmt: skip
        return self

    def kill(self) -> None:
        """As kill -9 does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE_S)

    def freeze(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)
        self.is_frozen = False

    def stop(self) -> None:
        """Politely: it finishes what it is doing, and leaves its group."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not end\n{self.said()}") from None

    def said(self) -> str:
        return self._output.read_text(errors="replace") if self._output.exists() else ""
