"""``dying_command.py MODULE:NAME ARGUMENTS...``: the command line, which is killed with all that it has started at the
moment when it calls what is named. Where exactly it dies is then no matter of luck."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any, NoReturn

from headpond.cli.main import main


def die(*given: Any, **named: Any) -> NoReturn:
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("still alive")


def arrange(place: str) -> None:
    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *holders, name = path.split(".")
    for holder in holders:
        owner = getattr(owner, holder)
    getattr(owner, name)  # there has to be something that is not called any more
    setattr(owner, name, die)


if __name__ == "__main__":
    arrange(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
