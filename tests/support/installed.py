"""Programs beyond Python packages that some tests use, installed on a Debian where that is possible."""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
from pathlib import Path

INSTALL_S_MAX = 120


def installed(program: str) -> bool:
    """Tries once where it is missing; without it, its tests are skipped and say so."""
    if shutil.which(program) is None:
        _install_what_is_missing()
    return shutil.which(program) is not None


@functools.cache
def _install_what_is_missing() -> None:
    script = Path(__file__).parent / "install_debian.sh"
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(["sh", str(script)], check=False, timeout=INSTALL_S_MAX)
