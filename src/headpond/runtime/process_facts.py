"""What the operating system knows about this process, for the metrics. Linux's /proc where there is one."""

from __future__ import annotations

import os
import resource
import sys
import time

from headpond.ports import ProcessFacts

# Read when this module is imported: near enough to the start for a graph.
_STARTED_S = time.time()


def process_facts() -> ProcessFacts:
    """Blocking: counting the open files takes a while when there are many."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    resident, virtual = _memory_bytes(usage.ru_maxrss)
    return ProcessFacts(
        cpu_s=usage.ru_utime + usage.ru_stime + children.ru_utime + children.ru_stime,
        resident_bytes=resident,
        virtual_bytes=virtual,
        open_files=_open_files(),
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        started_s=_STARTED_S,
        python=".".join(str(part) for part in sys.version_info[:3]),
    )


def _memory_bytes(resident_kb_max: int) -> tuple[int, int]:
    try:
        with open("/proc/self/statm") as file:
            virtual, resident = file.read().split()[:2]
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        return int(resident) * page_bytes, int(virtual) * page_bytes
    except (OSError, ValueError):
        unit = 1 if sys.platform == "darwin" else 1_024
        return resident_kb_max * unit, 0  # the most it ever was: better than nothing


def _open_files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder)) - 1  # the listing's own
        except OSError:
            continue
    return 0
