"""How a test runs the ``headpond`` command: with this interpreter, and with nothing of the test's own surroundings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]

# What people set for their tests and would make the broker slow, talkative or not start at all.
_NOT_FOR_THE_BROKER = frozenset(
    {
        "COVERAGE_PROCESS_CONFIG",
        "COVERAGE_PROCESS_START",
        "COV_CORE_SOURCE",
        "PYTHONASYNCIODEBUG",
        "PYTHONDEVMODE",
        "PYTHONINSPECT",
        "PYTHONTRACEMALLOC",
        "PYTHONWARNINGS",
    }
)


def headpond_command(*arguments: str, module: str = "headpond") -> list[str]:
    """-P: modules that lie in the current folder must not shadow anything of the broker's."""
    return [sys.executable, "-P", "-m", module, *arguments]


def headpond_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's variables without settings that would leak into the broker. The Headpond that runs is the one that
    is imported here, also when it was found through ``sys.path`` alone (never a whole site-packages, which would come
    before the standard library then)."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HEADPOND_") and name not in _NOT_FOR_THE_BROKER
    }
    if SOURCE.name not in ("site-packages", "dist-packages"):
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCE), variables.get("PYTHONPATH")]))
    return {**variables, **(extra or {})}
