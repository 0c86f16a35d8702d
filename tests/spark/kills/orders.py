"""Orders to kill: files in a folder, each for one step of one micro-batch. Whoever comes there first obeys it, once.

5.task-staged.python        micro-batch 5, the step, who is killed with kill -9:
    python                  the process that is there: a Python worker of a task, or the one that commits
    jvm                     the JVM that it belongs to: an executor, or the driver
    driver                  the driver's JVM, from wherever the step is
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

DRIVER = "driver.pid"
OBEYED = "obeyed"
VICTIMS = ("python", "jvm", "driver")


def place(folder: Path, batch_id: int, step: str, victim: str) -> None:
    assert victim in VICTIMS
    (folder / f"{batch_id}.{step}.{victim}").touch()


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name[0].isdigit())


def obey(folder: str, batch_id: int, step: str) -> None:
    for victim in VICTIMS:
        name = f"{batch_id}.{step}.{victim}"
        try:
            os.rename(f"{folder}/{name}", f"{folder}/{OBEYED}.{name}")
        except FileNotFoundError:
            continue
        os.kill(_pid_of(folder, victim), signal.SIGKILL)


def _pid_of(folder: str, victim: str) -> int:
    if victim == "python":
        return os.getpid()
    if victim == "driver":
        return int(Path(folder, DRIVER).read_text())
    pid = os.getppid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert pid > 1, "there is no JVM above this process"
    return pid
