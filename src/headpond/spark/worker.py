"""What happens first in a Python worker of Spark, whatever it is asked to do there.

Versions    A task may be run by another installation than the one that planned it: ``VersionsDiffer``.
Memory      PySpark collects all garbage after every task. With Arrow and numba loaded a worker holds 170,000 objects
            that stay until it ends, and to look at all of them takes as long as to decode a million records: a third
            of what the workers did in a stream from topic to topic. So they are taken out of its collections.
"""

from __future__ import annotations

import gc
import sys

from headpond import __version__

FIRST_TASKS = 8
"""By then everything is loaded. What later tasks leave behind is not for good, and is to be collected."""

_tasks_to_watch = FIRST_TASKS


class VersionsDiffer(RuntimeError):
    """Driver and executor are not the same Headpond."""


def begin_task(planned_by: str) -> None:
    if planned_by != __version__:
        raise VersionsDiffer(
            f"the driver has headpond {planned_by} and this executor has {__version__}: "
            "install the same headpond[spark] on every node"
        )
    keep_what_is_loaded()


def keep_what_is_loaded() -> None:
    """Garbage was collected after the last task, so whatever is there now stays. In a process that is not a worker it
    does nothing: its memory is its own affair."""
    global _tasks_to_watch
    if _tasks_to_watch and _is_worker():
        _tasks_to_watch -= 1
        gc.freeze()


def _is_worker() -> bool:
    module = getattr(sys.modules.get("__main__"), "__spec__", None)
    return module is not None and module.name == "pyspark.daemon"
