"""A driver to be killed: copies a topic to another one to the source's end, and starts again what fails.

    python job.py '{"kind": ..., "master": ..., "bootstrap": ..., "source": ..., "target": ..., ...}'     (copying.py)

    stream      writeStream, a micro-batch for so many rows
    update      the same in mode update, which is a batch write in foreachBatch, as in a pipeline
    batch       a read and a write with txnAppId for so many rows; a driver that comes new begins with the first

Ends with 0 when everything is copied. When its JVM is killed, it ends with something else, and is started again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def end_with_the_test() -> None:
    """When stdin ends, so does everything in this session: the driver's JVM and its executors."""
    os.read(0, 1)  # not through sys.stdin, whose lock a thread must not hold when Python ends
    os.killpg(0, signal.SIGKILL)


class Job:
    def __init__(self, plan: dict[str, Any]) -> None:
        from spark.kills.killing_sink import ORDERS, KillingSource
        from spark.kills.orders import DRIVER

        self._plan = plan
        self._folder = Path(plan["folder"])
        self._orders = self._folder / ORDERS
        self._spark = started(plan["master"])
        pid = self._spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        (self._orders / DRIVER).write_text(str(pid))
        self._spark.dataSource.register(KillingSource)

    def stream(self) -> None:
        from spark.kills.killing_sink import NAME

        # A shuffle: its output dies with an executor, and the stage is done again.
        writer = self._read_stream().repartition(3).writeStream.format(NAME).options(**self._target())
        self._until_done(lambda: self._run(writer))

    def update(self) -> None:
        seen = self._read_stream().groupBy("key", "value").count().select("key", "value")
        writer = seen.writeStream.outputMode("update").foreachBatch(self._write)
        self._until_done(lambda: self._run(writer))

    def batch(self) -> None:
        for version in range(self._plan["count"] // self._plan["rows"]):
            frame = self._read_batch(version)
            self._until_done(lambda: self._write(frame, version))  # noqa: B023

    def _read_stream(self) -> DataFrame:
        reader = self._spark.readStream.format("headpond").options(**self._source(), startingOffsets="earliest")
        return reader.option("maxOffsetsPerTrigger", str(self._plan["rows"])).load().select("key", "value")

    def _read_batch(self, version: int) -> DataFrame:
        each = self._plan["rows"] // 2
        first, last = ({str(index): (version + more) * each for index in range(2)} for more in (0, 1))
        reader = self._spark.read.format("headpond").options(**self._source())
        reader = reader.option("startingOffsets", json.dumps({self._plan["source"]: first}))
        reader = reader.option("endingOffsets", json.dumps({self._plan["source"]: last}))
        return reader.load().select("key", "value").repartition(3)

    def _run(self, writer: Any) -> None:
        checkpoint = str(self._folder / "checkpoint")
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()

    def _write(self, frame: DataFrame, version: int) -> None:
        from spark.kills.killing_sink import NAME

        writer = frame.write.format(NAME).options(**self._target(), stagingDir=str(self._folder / "staging"))
        writer.option("txnAppId", "kills").option("txnVersion", str(version)).mode("append").save()

    def _source(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._plan["bootstrap"], "subscribe": self._plan["source"]}

    def _target(self) -> dict[str, str]:
        from spark.kills.killing_sink import ORDERS

        target = {"kafka.bootstrap.servers": self._plan["bootstrap"], "topic": self._plan["target"]}
        return {**target, ORDERS: str(self._orders)}

    def _until_done(self, work: Callable[[], None]) -> None:
        from spark.kills.orders import left

        while True:
            before = left(self._orders)
            try:
                work()
                return
            except Exception as error:
                print(f"it failed: {str(error)[:2000]}", flush=True)
                if left(self._orders) == before:
                    raise SystemExit("it failed, and nobody was killed") from error
                self._spark.range(1).count()  # raises when the JVM is gone


def started(master: str) -> SparkSession:
    from headpond.spark.session import start_session

    settings = {"spark.sql.shuffle.partitions": "2", "spark.executorEnv.PYTHONPATH": ":".join(sys.path)}
    if master.startswith("local-cluster"):  # both executors have their share from the first stage on
        settings["spark.scheduler.minRegisteredResourcesRatio"] = "1.0"
        settings["spark.scheduler.maxRegisteredResourcesWaitingTime"] = "120s"
    return start_session("kills", master=master, config=settings)


if __name__ == "__main__":
    threading.Thread(target=end_with_the_test, daemon=True).start()
    plan = json.loads(sys.argv[1])
    getattr(Job(plan), plan["kind"])()
