"""Sees to it that nothing is left of a broker, however the process that owns it ends.

The guard is a shell that waits for the end of its standard input, which only the owner holds open: its normal end,
its kill -9 and a ``close`` look the same from there. Then it kills the broker with everything that the broker started
(the broker leads a process group of its own) and removes the temporary folder. A pipe rather than Linux's death
signal: that one does not exist on macOS, and comes when the *thread* that started the broker ends.

The broker's number reaches the guard before the broker runs: a shell writes it into the guard's pipe and then becomes
the broker, so there is no moment at which a kill -9 of the owner leaves a broker that the guard does not know.

The guard may be killed, too. So the broker itself holds the reading end of a second pipe, the lifeline, whose other
end only the owner has: when that ends, the broker does the guard's work (``guarded.py``).

Where owner, guard and broker are all killed before one of them could do it, the folder is left, and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from typing import IO

from headpond.testing.command import headpond_command
from headpond.testing.guarded import REMOVE, SHELL
from headpond.testing.pipes import OwnedPipes

END_S = 30.0
"""Removing a folder takes milliseconds; an end that takes longer than this is an error."""

# The group's number is the last line; an empty one: there is none now.
_GUARD = (
    """
group=
while read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
"""
    + REMOVE
)
# A guard that was killed reads no number: the broker starts nevertheless.
_BECOME = "trap '' PIPE; echo $$ 2>/dev/null >&0; trap - PIPE; exec \"$@\" </dev/null"


class Guard:
    """Watches one broker at a time, and ``folder`` (None: nothing to remove)."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        path = os.pathsep.join(filter(None, [os.environ.get("PATH"), os.defpath]))
        pipes = OwnedPipes()
        try:
            self._lifeline, _ = pipes.pipe()
            heard, self._pipe = pipes.pipe()
            self._shell = subprocess.Popen(
                [SHELL, "-c", _GUARD, "headpond-guard", folder or ""],
                stdin=heard,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": path},
                cwd="/",
                start_new_session=True,  # Ctrl-C, a hang-up and a kill of the owner's process group are not for it
            )
            heard.close()
        except BaseException:
            pipes.close()
            raise
        # A broker that is not reachable any more ends, too. (A Popen that still runs is kept by its module.)
        self._let_go = weakref.finalize(self, pipes.close)

    def headpond(self, *arguments: str) -> list[str]:
        """The command ``headpond ARGUMENTS`` for ``launch``; it ends with the owner, with and without this guard."""
        lifeline, folder = str(self._lifeline.fileno()), self._folder or ""
        return headpond_command(lifeline, folder, *arguments, module="headpond.testing.guarded")

    def launch(
        self, command: Sequence[str], *, stdout: IO[bytes], stderr: IO[bytes], env: Mapping[str, str], cwd: str
    ) -> subprocess.Popen[bytes]:
        """Start ``command`` as the leader of a process group that this guard ends."""
        return subprocess.Popen(
            [SHELL, "-c", _BECOME, "headpond", *command],
            stdin=self._pipe,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            start_new_session=True,
            pass_fds=[self._lifeline.fileno()],
        )

    def forget(self) -> None:
        """What was launched has ended and been waited for: its number may soon be another's."""
        try:
            self._pipe.write(b"\n")
        except BrokenPipeError:
            pass  # the guard was killed: it will not kill anything either

    def end(self) -> None:
        """Let it do its work now; returns when it is done."""
        self._let_go()
        self._shell.wait(END_S)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)  # what a guard that was killed has left
