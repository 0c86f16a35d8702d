"""A task reads its range of a partition, straight from the leader, and ends when it has reached its end or raises.

A ``read`` that ends early would be success to Spark, and the rows lost. So the end is reached by offsets that were seen
(control batches and aborted transactions count), and what can't be read is either ``DataLost`` or, where the user has
said so (``failOnDataLoss`` false), skipped with a line in the log.

Leaders     The client's ``Reader`` follows leaders and outlives restarts, for ``kafkaConsumer.pollTimeoutMs``.
Speed       Fetching goes on in a thread of its own while rows are decoded and handed to Spark; what waits is bounded.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from headpond.client import Client, ClientError
from headpond.client.consumer import Reader
from headpond.client.fetched import FetchedBatch
from headpond.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition
from headpond.spark.kafka.link import Link
from headpond.spark.reading.cluster import earliest_offsets
from headpond.spark.reading.losses import report
from headpond.spark.reading.options import SourceOptions
from headpond.spark.reading.planning import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("headpond.spark")

BUFFER_BYTES_MAX = 16 * 1024 * 1024
"""Fetched and not yet decoded, in each task."""

GONE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def read_range(
    options: SourceOptions, wanted: OffsetRange, topic_id: bytes | None, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    from headpond.spark.codec import decode_batches  # pyarrow and numba: for those who have something to read

    with closing(fetch_range(options, wanted, topic_id)) as fetches:
        for batches in fetches:
            yield from decode_batches(batches, columns=columns)


def fetch_range(
    options: SourceOptions, wanted: OffsetRange, topic_id: bytes | None
) -> Generator[list[FetchedBatch], None, None]:
    """The same before it is decoded: batches that hold every record of the range that a reader may see."""
    with Link(options.client) as link:
        position = wanted.from_offset
        while position < wanted.end_offset:
            reading = _Reading(link, options, wanted._replace(from_offset=position), topic_id)
            try:
                while batches := reading.next_batches():
                    yield batches
                return
            except ClientError as error:
                position = reading.after(error)
            finally:
                reading.close()


class _Reading:
    """One attempt to read a range to its end."""

    def __init__(self, link: Link, options: SourceOptions, wanted: OffsetRange, topic_id: bytes | None) -> None:
        self._link = link
        self._options = options
        self._wanted = wanted
        self._topic_id = topic_id
        self._reader: Reader | None = None  # lives on the link's thread, and is asked nothing from here
        self._position = wanted.from_offset

    def next_batches(self) -> list[FetchedBatch]:
        """Some more; none when the end is reached. ``ClientError`` when it can't be."""
        timeout_s = self._options.client.poll_timeout_s
        if self._reader is None:
            self._link.run(self._check_topic)
            self._reader = self._link.once(self._open)
        while True:
            try:
                batches, self._position = self._link.once(self._take, timeout_s)
            except TimeoutError:
                before, self._position = self._position, self._link.once(self._where)
                if self._position > before:
                    continue  # nothing but what a reader must not see, and a lot of it
                raise self._stuck() from None
            if not batches and self._position < self._wanted.end_offset:  # the reader promises otherwise
                what = f"{self._wanted.tp}: reading ended at offset {self._position}, before {self._wanted.end_offset}"
                raise ClientError(ErrorCode.UNKNOWN_SERVER_ERROR, what)
            return batches

    async def _check_topic(self, client: Client) -> None:
        """That the topic is the one that was planned with; and where it is, is known from here on."""
        tp = self._wanted.tp
        topic = (await client.metadata([tp.topic])).topics[tp.topic]
        if topic.error is not ErrorCode.NONE:
            raise ClientError(topic.error, f"topic {tp.topic}: {topic.error.name}")
        if self._topic_id not in (None, ZERO_TOPIC_ID, topic.topic_id):
            raise ClientError(ErrorCode.UNKNOWN_TOPIC_ID, f"topic {tp.topic} was deleted and created again")
        if topic.partition(tp.partition) is None:
            raise ClientError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp} is gone")

    async def _open(self, client: Client) -> Reader:
        settings = self._options.client
        return Reader(
            client,
            {self._wanted.tp: self._wanted.from_offset},
            isolation=settings.isolation,
            end_offsets={self._wanted.tp: self._wanted.end_offset},
            max_wait_ms=settings.fetch_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_bytes,
            partition_max_bytes=settings.partition_fetch_bytes,
            buffer_bytes_max=BUFFER_BYTES_MAX,
            check_crcs=settings.check_crcs,
            timeout_s=settings.poll_timeout_s,
        )

    async def _take(self, client: Client) -> tuple[list[FetchedBatch], int]:
        assert self._reader is not None
        return await self._reader.take(), self._reader.position(self._wanted.tp)

    async def _where(self, client: Client) -> int:
        assert self._reader is not None
        return self._reader.position(self._wanted.tp)

    def after(self, error: ClientError) -> int:
        """Where to go on after a failure; raises it, or ``DataLost``, when that is nowhere."""
        tp, end_offset = self._wanted.tp, self._wanted.end_offset
        if error.code in GONE:
            self._report(f"{error}, before {tp} was read up to offset {end_offset}")
            return end_offset
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            position = self._link.once(self._where)
            begin = self._link.run(lambda client: self._begin(client, tp))
            self._report(f"{tp}: offset {position} is not in the log, which begins at {begin}")
            return min(begin, end_offset) if begin > position else end_offset
        if isinstance(error, _Stuck):
            self._report(str(error))
            return end_offset
        raise error

    async def _begin(self, client: Client, tp: TopicPartition) -> int:
        return (await earliest_offsets(client, [tp], self._options.client))[tp]

    def _report(self, what: str) -> None:
        report([what], is_failure=self._options.fail_on_data_loss)

    def _stuck(self) -> _Stuck:
        tp, position = self._wanted.tp, self._position
        seconds = self._options.client.poll_timeout_s
        return _Stuck(
            f"{tp}: nothing came at offset {position} for {seconds:g} s, and {self._wanted.end_offset} is the end"
        )

    def close(self) -> None:
        if self._reader is not None:
            reader = self._reader

            async def close(client: Client) -> None:
                await reader.close()

            self._link.once(close)


class _Stuck(ClientError):
    """The log is shorter than it was when the read was planned, or its leader does not say so."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OFFSET_NOT_AVAILABLE, message)
