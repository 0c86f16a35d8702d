"""Programs beyond Python packages that some tests use, installed on a Debian where that is possible."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

INSTALL_S_MAX = 120
PROGRAMS = ("kcat", "rsync", "zsh", "fish")


def begin_to_install() -> None:
    """In the background: it takes most of a minute on a new machine, and few tests need any of it."""
    if any(shutil.which(program) is None for program in PROGRAMS):
        _installation()


def installed(program: str) -> bool:
    """Tries once where it is missing; without it, its tests are skipped and say so."""
    if shutil.which(program) is None:
        _installation().join()
    return shutil.which(program) is not None


@functools.cache
def _installation() -> threading.Thread:
    thread = threading.Thread(target=_install_what_is_missing, daemon=True)
    thread.start()
    return thread


def _install_what_is_missing() -> None:
    script = Path(__file__).parent / "install_debian.sh"
    # One at a time: apt refuses a second one, and the tests that need it would be skipped.
    with (Path(tempfile.gettempdir()) / "headpond-tests-install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["sh", str(script)], check=False, timeout=INSTALL_S_MAX)
