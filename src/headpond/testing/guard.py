"""Sees to it that nothing is left of a broker, however the process that owns it ends.

The guard is a shell that waits for the end of its standard input, which only the owner holds open: its normal end,
its kill -9 and a ``close`` look the same from there. Then it kills the broker with everything that the broker started
(the broker leads a process group of its own) and removes the temporary folder. A pipe rather than Linux's death
signal: that one does not exist on macOS, and comes when the *thread* that started the broker ends.

The broker's number reaches the guard before the broker runs: a shell writes it into the guard's pipe and then becomes
the broker, so there is no moment at which a kill -9 of the owner leaves a broker that nobody knows.
"""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from typing import IO

END_S = 30.0
"""Removing a folder takes milliseconds; whoever waits longer than this should hear of it."""

# The group's number is the last line; an empty one: there is none now. Some file may still be made by a process that
# is about to die, hence the attempts.
_GUARD = """
group=
while read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
[ -n "$1" ] || exit 0
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$1" 2>/dev/null
    [ -e "$1" ] || exit 0
    sleep 0.1
done
"""
_BECOME = 'echo $$ >&0; exec "$@" </dev/null'
_SHELL = "/bin/sh"


class Guard:
    """Watches one broker at a time, and ``folder`` (None: nothing to remove)."""

    def __init__(self, folder: str | None) -> None:
        path = os.pathsep.join(filter(None, [os.environ.get("PATH"), os.defpath]))
        self._shell = subprocess.Popen(
            [_SHELL, "-c", _GUARD, "headpond-guard", folder or ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": path},
            cwd="/",
            start_new_session=True,  # Ctrl-C, a hang-up and a kill of the owner's process group are not for it
            bufsize=0,
        )
        _guards.add(self)
        # A broker that nobody can reach any more ends, too. (A Popen that still runs is kept by its module.)
        weakref.finalize(self, self._pipe.close)

    def launch(
        self, command: Sequence[str], *, stdout: IO[bytes], stderr: IO[bytes], env: Mapping[str, str], cwd: str
    ) -> subprocess.Popen[bytes]:
        """Start ``command`` as the leader of a process group that this guard ends."""
        return subprocess.Popen(
            [_SHELL, "-c", _BECOME, "headpond", *command],
            stdin=self._pipe,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )

    def forget(self) -> None:
        """What was launched has ended and been waited for: its number may soon be another's."""
        try:
            self._pipe.write(b"\n")
        except BrokenPipeError:
            pass  # somebody killed the guard: it will not kill anybody either

    def end(self) -> None:
        """Let it do its work now; returns when it is done."""
        self._pipe.close()
        self._shell.wait(END_S)

    def let_go(self) -> None:
        """In a forked child: the pipe is the parent's, and must not stay open for as long as the child lives."""
        self._pipe.close()

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._shell.stdin is not None
        return self._shell.stdin


_guards: weakref.WeakSet[Guard] = weakref.WeakSet()


def _let_go_of_all() -> None:
    for guard in list(_guards):
        guard.let_go()


os.register_at_fork(after_in_child=_let_go_of_all)
