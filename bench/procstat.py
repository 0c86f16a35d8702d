"""CPU seconds and resident memory of a process and its descendants, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int) -> list[int]:
    """The process and everything below it that is alive, parents first."""
    parents = {child: int(fields[1]) for child in _pids() if (fields := _stat(child))}
    family = [pid]
    for member in family:
        family.extend(sorted(child for child, parent in parents.items() if parent == member))
    return [member for member in family if member in parents]


def cpu_s(pid: int) -> float:
    """User and system time of all threads, also those that ended; children that were waited for included."""
    ticks = 0
    for member in descendants(pid):
        if fields := _stat(member):
            ticks += sum(int(value) for value in fields[11:15])
    return ticks / TICKS_PER_S


def rss_bytes(pid: int) -> int:
    total = 0
    for member in descendants(pid):
        if fields := _stat(member):
            total += int(fields[21]) * PAGE_BYTES
    return total


def _pids() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def _stat(pid: int) -> list[str] | None:
    """The fields after the command name, which may contain spaces and brackets; None when the process is gone."""
    try:
        content = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return content[content.rindex(")") + 2 :].split()
