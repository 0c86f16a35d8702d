"""A ``Member`` in a process of its own: to crash, to freeze, and to come back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from support.clients.members import Read
from support.jobs.process import JobProcess


class MemberFailed(Exception):
    """The library raised something; the text says what."""


class MemberProcess:
    """``options``: as for ``make_member``."""

    def __init__(self, output: Path, **options: Any) -> None:
        self._job = JobProcess("member.py", [json.dumps(options)], output)
        self._job.start(stdout=subprocess.PIPE)

    def poll(self) -> list[Read]:
        return [Read(partition, offset, value.encode()) for partition, offset, value in self._ask("poll")]

    def assignment(self) -> set[int]:
        return set(self._ask("assignment"))

    def commit(self) -> None:
        """Raises ``MemberFailed`` when the commit was refused."""
        self._ask("commit")

    def close(self) -> None:
        self._ask("close")
        self._job.kill()

    def abandon(self) -> None:
        """As kill -9 does."""
        self._job.kill()

    def freeze(self) -> None:
        """It says and hears nothing, until ``thaw``."""
        self._job.freeze()

    def thaw(self) -> None:
        self._job.thaw()

    def _ask(self, what: str) -> Any:
        self._job.stdin.write(what.encode() + b"\n")
        self._job.stdin.flush()
        line = self._job.stdout.readline()
        assert line, f"the member is gone\n{self._job.said()}"
        said = json.loads(line)
        if "error" in said:
            raise MemberFailed(said["error"])
        return said["answer"]
