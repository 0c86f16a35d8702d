"""What runs on executors. Attempts of a task can't be told apart, so one that stages touches no topic and no other's
file: which of them count is decided by the messages that reach the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from headpond.client import Client, ClientError
from headpond.client.finished import BatchProducer
from headpond.model import TopicPartition
from headpond.runtime.clock import SystemClock
from headpond.runtime.random import SystemRandom
from headpond.spark.kafka.link import Link
from headpond.spark.sink.errors import SinkFailed
from headpond.spark.sink.options import SinkOptions
from headpond.spark.sink.targets import Targets

if TYPE_CHECKING:
    import pyarrow as pa

    from headpond.spark.sink.messages import TaskDone, Write

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
SENT_AT_ONCE_BYTES = 1024 * 1024


class Task(NamedTuple):
    number: int
    """Of the DataFrame's partition."""
    query_id: str | None
    batch_id: int | None


def current_task() -> Task:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return Task(0, None, None)
    batch_id = context.getLocalProperty(BATCH_ID)
    return Task(context.partitionId(), context.getLocalProperty(QUERY_ID), None if batch_id is None else int(batch_id))


def stage(options: SinkOptions, location: str, write: Write, task: int, batches: Iterator[pa.RecordBatch]) -> TaskDone:
    """Into a file of this attempt's own."""
    from headpond.spark.sink.messages import TaskDone
    from headpond.spark.sink.rows import RowEncoder, chunks_of
    from headpond.spark.sink.staging import Folder, StagingWriter

    writer: StagingWriter | None = None
    rows = 0
    with Link(options.client) as link:
        encoder = RowEncoder(options, Targets(link), SystemClock(), turn=write.number + task, task=task)
        try:
            for chunk in chunks_of(batches):
                for tp, batch in encoder.encode(chunk):
                    if writer is None:
                        writer = Folder(location, write.folder).new_file(write.number, task, SystemRandom())
                    writer.append(tp, batch.data)
                rows += chunk.num_rows
            return TaskDone(write, rows, None if writer is None else writer.finish())
        except BaseException:
            if writer is not None:
                writer.discard()
            raise


def send(options: SinkOptions, write: Write, task: int, batches: Iterator[pa.RecordBatch]) -> TaskDone:
    """Straight to the topics: a task that is done again writes again."""
    from headpond.spark.sink.messages import TaskDone
    from headpond.spark.sink.rows import RowEncoder, chunks_of

    rows = 0
    with Link(options.client) as link:
        encoder = RowEncoder(options, Targets(link), SystemClock(), turn=write.number + task, task=task)

        async def open_producer(client: Client) -> BatchProducer:
            return BatchProducer(client, delivery_timeout_s=options.delivery_timeout_s)

        producer = link.once(open_producer)
        try:
            for chunk in chunks_of(batches):
                waiting: list[tuple[TopicPartition, bytearray, int]] = []
                size_bytes = 0
                for tp, batch in encoder.encode(chunk):
                    waiting.append((tp, batch.data, batch.record_count))
                    size_bytes += len(batch.data)
                    if size_bytes >= SENT_AT_ONCE_BYTES:
                        link.once(lambda _, some=waiting: producer.send(some))  # type: ignore[misc]
                        waiting, size_bytes = [], 0
                link.once(lambda _, some=waiting: producer.send(some))  # type: ignore[misc]
                rows += chunk.num_rows
            link.once(lambda _: producer.flush())
        except ClientError as error:
            raise SinkFailed(f"not all rows of task {task} could be written: {error}") from error
        finally:
            link.once(lambda _: producer.close())
    return TaskDone(write, rows, None)
