"""What Spark calls: ``df.write.format("headpond")`` and ``df.writeStream.format("headpond")``.

Spark makes a writer on the driver, sends copies to the executors (``write``), and has another process of the driver
call ``commit`` or ``abort`` with what the tasks returned; for a stream that is a new writer each time. What they share
is in the messages. Even an empty micro-batch runs a task, so that there is always one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headpond import __version__
from headpond.runtime.random import SystemRandom
from headpond.spark.sink.commit import Commit
from headpond.spark.sink.errors import SinkFailed
from headpond.spark.sink.folders import staging_location
from headpond.spark.sink.messages import TaskDone, Write, write_of_batch, write_of_query
from headpond.spark.sink.options import SinkOptions
from headpond.spark.sink.staging import Folder
from headpond.spark.sink.tasks import current_task, send, stage
from headpond.spark.worker import begin_task, keep_what_is_loaded

if TYPE_CHECKING:
    import pyarrow as pa

Messages = Sequence[WriterCommitMessage | None]


class _Writer:
    """What both kinds do."""

    protocol: type[Commit] = Commit

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._is_staged = options.delivery == "exactly-once"
        self._location = staging_location(options) if self._is_staged else ""
        self._planned_by = __version__

    def _write(self, write: Write, task: int, batches: Iterator[pa.RecordBatch]) -> TaskDone:
        begin_task(self._planned_by)
        if self._is_staged:
            return stage(self._options, self._location, write, task, batches)
        return send(self._options, write, task, batches)

    def _commit(self, messages: Messages) -> None:
        keep_what_is_loaded()
        done = _those_of_tasks(messages)
        if len(done) != len(messages):
            raise SinkFailed(
                f"nothing was written: {len(messages) - len(done)} tasks did not say what they have staged"
            )
        if self._is_staged and done:
            self.protocol(self._options, self._location, done[0].write, done).run()

    def _abort(self, messages: Messages) -> None:
        done = _those_of_tasks(messages)
        if self._is_staged and done:
            folder = Folder(self._location, done[0].write.folder)
            folder.delete([message.file for message in done if message.file is not None])
            if not done[0].write.is_marked:
                folder.remove()


class BatchWriter(_Writer, DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        super().__init__(options)
        self._batch_write = write_of_batch(options, SystemRandom())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._write(self._batch_write, current_task().number, iterator)

    def commit(self, messages: Messages) -> None:
        self._commit(messages)

    def abort(self, messages: Messages) -> None:
        self._abort(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = current_task()
        if task.query_id is None or task.batch_id is None:
            raise SinkFailed("Spark did not tell this task which query and micro-batch it belongs to")
        return self._write(write_of_query(task.query_id, task.batch_id), task.number, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:
        for message in _those_of_tasks(messages):
            if message.write.number != batchId:
                raise SinkFailed(
                    f"nothing was written: a task of micro-batch {message.write.number} answers for {batchId}"
                )
        self._commit(messages)

    def abort(self, messages: Messages, batchId: int) -> None:
        self._abort(messages)


def _those_of_tasks(messages: Messages) -> list[TaskDone]:
    """Without those of tasks that failed, which have none."""
    return [message for message in messages if isinstance(message, TaskDone)]
