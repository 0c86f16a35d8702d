"""Signals that the test run was started to ignore, ignored by the run alone.

``nohup`` ignores SIGHUP and a shell's background SIGINT, and what is ignored stays so in every child, grandchildren
included: tests that end programs with a signal could only fail. A handler that does nothing is as good for the run
itself, and ``exec`` gives its children the default again.
"""

from __future__ import annotations

import os
import signal

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_VARIABLE = "HEADPOND_TEST_OUTLIVES"
"""Names them for the workers of a parallel run, which are children too; no broker that tests start sees it."""


def keep_ignored_signals_from_children() -> None:
    known = os.environ.get(_VARIABLE, "").split(",")
    ignored = [each for each in ENDING if each.name in known or signal.getsignal(each) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _nothing)
    os.environ[_VARIABLE] = ",".join(number.name for number in ignored)


def _nothing(number: int, frame: object) -> None:
    pass
