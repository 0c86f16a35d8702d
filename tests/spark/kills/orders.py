"""Orders to kill: files in a folder, each for one step of one micro-batch. Whoever comes there first obeys it, once.

5.task-staged.python        micro-batch 5, the step, who is killed with kill -9:
    python                  the process that is there: a Python worker of a task, or the one that commits
    jvm                     the JVM that it belongs to: an executor, or the driver
    driver                  the driver's JVM, from wherever the step is
    executor                the JVM of one of the micro-batch's tasks, from wherever the step is
    nobody                  the task waits until another one has ended its work, and ends it, too
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from spark.kills.attempts import Attempt, wait_for_twin

DRIVER = "driver.pid"
EXECUTOR = "executor.pid"
OBEYED = "obeyed"
NOBODY = "nobody"
VICTIMS = ("python", "jvm", "driver", "executor", NOBODY)


def place(folder: Path, batch_id: int, step: str, victim: str) -> None:
    assert victim in VICTIMS
    (folder / f"{batch_id}.{step}.{victim}").touch()


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name[0].isdigit())


def obey(folder: str, batch_id: int, step: str, attempt: Attempt | None = None) -> bool:
    """Whether the JVM that this process belongs to was killed: it goes on for a moment, and nobody hears of it."""
    is_orphan = False
    for victim in VICTIMS:
        name = f"{batch_id}.{step}.{victim}"
        try:
            os.rename(f"{folder}/{name}", f"{folder}/{OBEYED}.{name}")
        except FileNotFoundError:
            continue
        if victim == NOBODY:
            assert attempt is not None, "only a task can wait for another one"
            wait_for_twin(folder, attempt)
            break  # what else is ordered here is for others
        pid = _pid_of(folder, victim)
        is_orphan |= pid == _jvm_above()
        os.kill(pid, signal.SIGKILL)
    return is_orphan


def driver_of(folder: str) -> int:
    return int(Path(folder, DRIVER).read_text())


def note_executor(folder: str) -> None:
    """This task's is one to be killed by ``executor``."""
    path = Path(folder, f"{EXECUTOR}.{os.getpid()}")
    path.write_text(str(_jvm_above()))
    path.replace(Path(folder, EXECUTOR))


def _pid_of(folder: str, victim: str) -> int:
    if victim == "python":
        return os.getpid()
    if victim == "driver":
        return driver_of(folder)
    if victim == "executor":
        return int(Path(folder, EXECUTOR).read_text())
    return _jvm_above()


def _jvm_above() -> int:
    pid = os.getppid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert pid > 1, "there is no JVM above this process"
    return pid
