"""A stand-in for Spark's engine, without a JVM: it stages and commits micro-batches as Spark has the sink do it, and
can end a driver at any step, or let it sleep there while another one goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from headpond.client.finished import BatchProducer
from headpond.spark.sink.commit import Commit
from headpond.spark.sink.messages import TaskDone, write_of_query
from headpond.spark.sink.options import SinkOptions, parse_sink_options
from headpond.spark.sink.staging import StagedFile
from headpond.spark.sink.tasks import stage

STEPS = ("check", "begin", "is_done", "first file", "produce", "mark", "end", "clean")
TASKS = 2
NOTHING_HAPPENS = lambda: None  # noqa: E731


class Killed(BaseException):
    """kill -9: nothing is undone, no message is sent, the connections are just gone."""


class HookedCommit(Commit):
    """Calls ``hook`` after the step of that name."""

    step = ""
    hook: Callable[[], None] = staticmethod(NOTHING_HAPPENS)

    def _after(self, step: str) -> None:
        if step == self.step:
            self.hook()

    def check(self) -> None:
        super().check()
        self._after("check")

    def begin(self) -> None:
        super().begin()
        self._after("begin")

    def is_done(self) -> bool:
        found = super().is_done()
        self._after("is_done")
        return found

    def _produce_file(self, producer: BatchProducer, file: StagedFile) -> int:
        rows = super()._produce_file(producer, file)
        if file is self.files[0]:
            self.link.once(lambda _: producer.flush())
            self._after("first file")
        return rows

    def produce(self) -> None:
        super().produce()
        self._after("produce")

    def mark(self) -> None:
        super().mark()
        self._after("mark")

    def end(self) -> None:
        super().end()
        self._after("end")

    def clean(self) -> None:
        super().clean()
        self._after("clean")


class KilledCommit(HookedCommit):
    def _after(self, step: str) -> None:
        if step == self.step:
            raise Killed

    def _undo(self) -> None:
        """Who was killed undoes nothing."""


class Query:
    """One query id, whatever becomes of its drivers."""

    def __init__(self, bootstrap: str, topic: str, query_id: str, folder: Path, **more: str) -> None:
        given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, **more}
        self.options: SinkOptions = parse_sink_options(given, is_stream=True)
        self.query_id = query_id
        self.folder = folder

    def stage(self, batch_id: int, rows: int = 6) -> list[TaskDone]:
        """As the tasks of one attempt do: ``<batch>/<number>`` in each row, split among them."""
        write = write_of_query(self.query_id, batch_id)
        texts = [f"{batch_id}/{number}" for number in range(rows)]
        messages = []
        for task in range(TASKS):
            mine = texts[task::TASKS]
            frame = pa.RecordBatch.from_pydict({"key": mine, "value": mine})
            messages.append(stage(self.options, str(self.folder), write, task, iter([frame])))
        return messages

    def commit(self, messages: list[TaskDone], protocol: type[Commit] = Commit) -> None:
        protocol(self.options, str(self.folder), messages[0].write, messages).run()

    def run(self, batch_id: int, rows: int = 6) -> None:
        self.commit(self.stage(batch_id, rows))

    def staged_files(self) -> list[str]:
        return sorted(path.name for path in self.folder.rglob("*.batches"))


def killed_after(step: str) -> type[Commit]:
    return type("KilledThere", (KilledCommit,), {"step": step})


def asleep_after(step: str, meanwhile: Callable[[], None]) -> type[Commit]:
    """A driver that sleeps there while ``meanwhile`` happens, and goes on as if nothing was."""
    return type("AsleepThere", (HookedCommit,), {"step": step, "hook": staticmethod(meanwhile)})


def texts(batches: dict[int, int]) -> list[str]:
    """What a topic holds after these micro-batches, with so many rows each."""
    return sorted(f"{batch}/{number}" for batch, rows in batches.items() for number in range(rows))
