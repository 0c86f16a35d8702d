"""A job that copies a topic, in processes that may be killed, until one of them ends well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from spark.clusters import home_in
from spark.kills.orders import left, place

LOCAL, CLUSTER = "local[2,4]", "local-cluster[2,1,1024]"
ORDERS = "orders"
ROWS = 12
"""In each micro-batch."""
STREAM, UPDATE, BATCH = "stream", "update", "batch"
"""How the job copies: see ``job.py``."""
STAGE_AGAIN = [("task-middle", "nobody"), ("task-staged", "jvm")]
"""On a cluster: an executor dies with its share of a shuffle while the other one's task waits. What Spark does again is
the whole stage, that task's work included, and both end it."""
START_S_MAX = 400
ROOT = Path(__file__).parents[3]
JOB = Path(__file__).with_name("job.py")


def feed(bootstrap: str, topic: str, count: int) -> int:
    """Numbered records in two partitions; and the topic that they are copied to, with three."""
    topics = [NewTopic(topic, 2, 1), NewTopic(f"{topic}-copy", 3, 1)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics(topics).values():
        made.result(60)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, str(number), str(number), number % 2)
    assert producer.flush(60) == 0
    return count


class Copy:
    """The job, in processes of its own, until one of them ends well."""

    def __init__(
        self, bootstrap: str, topic: str, master: str, folder: Path, *, kind: str = STREAM, count: int
    ) -> None:
        self.orders = folder / ORDERS
        self.orders.mkdir()
        self.target = f"{topic}-copy"
        self._folder = folder
        self._plan = {
            "kind": kind,
            "count": count,
            "master": master,
            "bootstrap": bootstrap,
            "source": topic,
            "target": self.target,
            "folder": str(folder),
            "rows": ROWS,
        }
        self.starts = 0

    def place(self, orders: Sequence[Sequence[tuple[str, str]]]) -> None:
        """(step, victim) for the first micro-batch that is not empty, for the second, and so on."""
        for number, kills in enumerate(orders):
            for step, victim in kills:
                place(self.orders, number + 1, step, victim)  # micro-batch 0 of a stream is empty

    def run_to_end(self) -> None:
        while True:
            before = left(self.orders)
            if self._run() == 0:
                return
            assert left(self.orders) != before, f"it ends without having been killed\n{self._said()}"

    def _run(self) -> int:
        self.starts += 1
        path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "SPARK_HOME": str(home_in(self._folder)),
            "TMPDIR": str(self._tmp()),
        }
        with self._log().open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(JOB), json.dumps(self._plan)],
                stdin=subprocess.PIPE,  # its end is the job's end: nothing outlives the test
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )
        try:
            return process.wait(START_S_MAX)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it hangs\n{self._said()}") from None
        finally:
            try:  # what it has started: JVMs, executors
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def _tmp(self) -> Path:
        folder = self._folder / "tmp"
        folder.mkdir(exist_ok=True)
        return folder

    def _log(self) -> Path:
        return self._folder / "job.log"

    def _said(self) -> str:
        text = self._log().read_text(errors="replace")
        return f"orders left: {left(self.orders)}\n{text[-8_000:]}"
