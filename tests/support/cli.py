"""The ``headpond`` command as people run it: a process with a stdin, an exit code and two streams."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any, NamedTuple

from support.broker import headpond_command, headpond_environment
from support.waiting import DEADLINE_S


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    def failed_with(self, code: int = 1) -> str:
        """The one sentence on stderr of a command that failed as it should."""
        assert self.code == code, self
        assert len(self.err.splitlines()) == 1 and self.err.startswith("headpond"), self.err
        return self.err


class Cli:
    """Commands against one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.env = {"HEADPOND_BOOTSTRAP_SERVER": bootstrap}

    def __call__(self, *arguments: object, stdin: bytes | str = b"", env: Mapping[str, str] | None = None) -> Said:
        done = subprocess.run(
            headpond_command(*map(str, arguments)),
            env=headpond_environment({**self.env, **(env or {})}),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        said = Said(done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode())
        assert "Traceback" not in said.err, said.err
        return said

    def ok(self, *arguments: object, stdin: bytes | str = b"") -> Said:
        said = self(*arguments, stdin=stdin)
        assert said.code == 0, said
        return said

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
        """One that is still running; the caller ends it."""
        return subprocess.Popen(
            headpond_command(*map(str, arguments)),
            env=headpond_environment(self.env),
            stdin=subprocess.PIPE,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            **options,
        )
