"""Spark in other processes than the test's: a cluster of its own executors, a Spark Connect server, and executors whose
Python is not what it should be.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.waiting import eventually

CLUSTER = "local-cluster[2,1,1024]"
START_S_MAX = 120.0
END_S_MAX = 30.0


def home_in(folder: Path) -> Path:
    """Spark's home, in which a local cluster makes its working folder: not in the installation."""
    import pyspark

    home = folder / "spark-home"
    if not home.exists():
        home.mkdir()
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "work":
                (home / entry.name).symlink_to(entry)
    return home


def environment(folder: Path) -> dict[str, str]:
    """For a process that starts Spark: nothing is left in the installation."""
    from headpond.spark.java import find_java

    (folder / "tmp").mkdir(exist_ok=True)
    return {
        **os.environ,
        "JAVA_HOME": find_java().home,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home_in(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(folder / "tmp"),
    }


@contextlib.contextmanager
def connect_server(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """A Spark Connect server on this machine; its address. It ends with the block, with all that it has started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        **(more or {}),
    }
    made = home_in(folder)
    line = [str(made / "bin/spark-submit"), "--master", "local[2]"]
    for name, value in settings.items():
        line += ["--conf", f"{name}={value}"]
    line += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = folder / "connect.log"
    with log.open("wb") as said:
        server = subprocess.Popen(
            line, env=environment(folder), cwd=folder, stdout=said, stderr=said, start_new_session=True
        )
    try:

        def answers() -> bool:
            assert server.poll() is None, log.read_text()[-4_000:]
            with socket.socket() as tried:
                return tried.connect_ex(("127.0.0.1", port)) == 0

        eventually(answers, what="a Spark Connect server", deadline_s=START_S_MAX)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()  # it finishes its log of events
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(END_S_MAX)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


_WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "MODULE":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
NO_HEADPOND, NO_NUMBA, NO_FASTAVRO = (_WITHOUT.replace("MODULE", name) for name in ("headpond", "numba", "fastavro"))
BROKEN_NUMBA = _WITHOUT.replace("MODULE", "numba").replace("ModuleNotFoundError", "ImportError")
OTHER_HEADPOND = """
import headpond

headpond.__version__ = "9.9"
"""
OTHER_PYTHON = """
import collections, sys

kind = collections.namedtuple("version_info", "major minor micro releaselevel serial")
sys.version_info = kind(3, 99, *sys.version_info[2:])
"""


def python_with(folder: Path, change: str) -> str:
    """A Python like this one, but for what ``change`` does to it first."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(change)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return str(python)
