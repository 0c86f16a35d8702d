"""A driver to be killed: copies a topic to another one to the source's end, and starts its query again when it fails.

    python job.py '{"master": ..., "bootstrap": ..., "source": ..., "target": ..., "folder": ..., "rows": ...}'

Ends with 0 when everything is copied. When its JVM is killed, it ends with something else, and is started again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any


def end_with_the_test() -> None:
    """When stdin ends, so does everything in this session: the driver's JVM and its executors."""
    os.read(0, 1)  # not through sys.stdin, whose lock a thread must not hold when Python ends
    os.killpg(0, signal.SIGKILL)


def main(plan: dict[str, Any]) -> None:
    from penstock.spark.session import start_session
    from spark.kills.killing_sink import NAME, ORDERS, KillingSource
    from spark.kills.orders import DRIVER, left

    folder = Path(plan["folder"])
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.executorEnv.PYTHONPATH": ":".join(sys.path),
    }
    spark = start_session("kills", master=plan["master"], config=settings)
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    (folder / ORDERS / DRIVER).write_text(str(pid))
    spark.dataSource.register(KillingSource)
    frame = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", plan["bootstrap"])
        .option("subscribe", plan["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(plan["rows"]))
        .load()
        .select("key", "value")
        .repartition(3)  # a shuffle: its output dies with an executor, and the stage is done again
    )
    while True:
        before = left(folder / ORDERS)
        query = (
            frame.writeStream.format(NAME)
            .option("kafka.bootstrap.servers", plan["bootstrap"])
            .option("topic", plan["target"])
            .option("checkpointLocation", str(folder / "checkpoint"))
            .option(ORDERS, str(folder / ORDERS))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
            return
        except Exception as error:
            print(f"the query failed: {str(error)[:2000]}", flush=True)
            if left(folder / ORDERS) == before:
                raise SystemExit("the query failed, and nobody was killed") from error
            spark.range(1).count()  # raises when the JVM is gone


if __name__ == "__main__":
    threading.Thread(target=end_with_the_test, daemon=True).start()
    main(json.loads(sys.argv[1]))
