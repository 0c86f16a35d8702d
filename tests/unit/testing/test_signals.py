"""A test run that ignores signals does not start its children so."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.signals import ENDING

TESTS = Path(__file__).parents[2]
SHOW = (
    "import signal, sys; print(*[signal.getsignal(getattr(signal, name)) is signal.SIG_IGN for name in sys.argv[1:]])"
)
RUN = f"""
import os, signal, subprocess, sys
sys.path.insert(0, {str(TESTS)!r})
from support.signals import keep_ignored_signals_from_children
keep_ignored_signals_from_children()
names = sys.argv[2:]
if sys.argv[1] == "worker":
    subprocess.run([sys.executable, "-c", open(0).read(), "run", *names], check=True)
else:
    for name in names:
        if name != "SIGINT":
            os.kill(os.getpid(), getattr(signal, name))
    subprocess.run([sys.executable, "-c", {SHOW!r}, *names], check=True)
"""


def ignore_all() -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.parametrize("of", ["run", "worker"])
def test_children_hear_the_signals_that_the_run_itself_goes_on_ignoring(of: str) -> None:
    names = [number.name for number in ENDING]
    done = subprocess.run(
        [sys.executable, "-c", RUN, of, *names],
        input=RUN,
        capture_output=True,
        text=True,
        preexec_fn=ignore_all,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["False"] * len(names)), done.stderr
