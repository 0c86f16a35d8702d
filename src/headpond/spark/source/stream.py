"""``spark.readStream.format("headpond")``: micro-batches, each from an offset to an offset that Spark keeps in its log.

The start   ``initialOffset`` asks nobody: Spark calls it more than once, and again after a crash, and must get the same
            answer. The first batch is empty, from that mark to the offsets that the options stand for: so the log holds
            the true start, and a restart can't begin elsewhere. (Trigger.Once has one batch only: there it reaches from
            the mark to the end, and the start is found again when it is planned.)
New ones    A partition that appears enters with its earliest offset, without rows, and is read from the next batch on.
Others      A checkpoint of Spark's own connector is gone on with, a batch that was logged and not finished included:
            its new partitions have rows. Only its first batch is refused, for where that begins is not in the log.
Group       With ``kafka.group.id`` the group is told how far the query is: by ``commit``, which comes one batch late,
            and by ``latestOffset``, whose start is the end of the batch that was done last. That is for people and
            monitoring; the checkpoint alone decides where a query goes on, and a refusal does not stop it.
A crash     leaves nothing behind but the group's offsets, which the next batch sets right.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headpond.client import Client, ClientError
from headpond.model import TopicPartition
from headpond.runtime.clock import SystemClock
from headpond.spark.kafka.link import Link
from headpond.spark.kafka.option_values import LONG_MAX
from headpond.spark.reading.cluster import (
    commit_group,
    earliest_offsets,
    latest_offsets,
    resolve_start,
    settled_offsets,
)
from headpond.spark.reading.losses import report
from headpond.spark.reading.offsets import Document, Offsets, check_first, read_document, start_document
from headpond.spark.reading.options import SourceOptions
from headpond.spark.reading.planning import is_too_little, limit_in_proportion, ranges_between
from headpond.spark.reading.range_reader import read_range
from headpond.spark.source.data_loss import compare, late_arrivals
from headpond.spark.source.ranges import RangePartition, partitions_for
from headpond.spark.worker import begin_task

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_log = logging.getLogger("headpond.spark")

COMMIT_TIMEOUT_S = 5.0
"""For telling the group: a batch need not wait longer for something that the next one makes good."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._link: Link | None = None
        self._target: Offsets | None = None  # AvailableNow: where the query ends
        self._latest: Offsets | None = None  # last heard
        self._told: dict[TopicPartition, int] = {}  # to the group
        self._complaint = ""
        self._last_batch_ms: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a task: the options and the columns, no connection."""
        return {**StreamReader(self._options, self._columns).__dict__}

    # ---- offsets

    def initialOffset(self) -> Document:
        return start_document()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Always a number, so that ``ReadAllAvailable`` means that Spark wants one batch only (Trigger.Once)."""
        return ReadMaxRows(self._options.rate.offsets_max or LONG_MAX)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ask(lambda client: latest_offsets(client, self._options, is_complete=False))

    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:
        begun = read_document(start)
        if begun is None:
            return self._first(limit).document()
        self._tell_group(begun)
        return self._next(begun, start, limit)

    def _first(self, limit: ReadLimit) -> Offsets:
        options = self._options
        ends = self._ask(lambda client: latest_offsets(client, options, is_complete=True))
        ends = self._latest = self._until_target(ends)
        if isinstance(limit, ReadAllAvailable):
            return Offsets(ends.by_partition, ends.topic_ids, is_from_start=True)
        begin = self._ask(lambda client: resolve_start(client, options, ends))
        return begin if begin.is_ours or not begin.by_partition else replace(begin, is_begin=True)

    def _next(self, begun: Offsets, start: Document, limit: ReadLimit) -> Document:
        options = self._options
        ends = self._latest = self._target or self._ask(lambda client: settled_offsets(client, options, begun))
        change = compare(begun, ends)
        report(change.losses, is_failure=options.fail_on_data_loss)
        begins = self._begins(change.arrived)
        report(late_arrivals(begins, begun), is_failure=options.fail_on_data_loss)
        until = {tp: ends.by_partition[tp] for tp in change.kept}
        if not isinstance(limit, ReadAllAvailable):
            now_ms = SystemClock().now_ms()
            if self._target is None and is_too_little(
                change.kept, until, options.rate, now_ms=now_ms, last_batch_ms=self._last_batch_ms
            ):
                return start
            if options.rate.offsets_max is not None:
                until = limit_in_proportion(change.kept, until, options.rate.offsets_max)
            if until != change.kept:
                self._last_batch_ms = now_ms
        there = Offsets({**until, **begins}, ends.topic_ids)
        return start if there.is_same_place(begun) else there.document()

    def _begins(self, arrived: list[TopicPartition]) -> dict[TopicPartition, int]:
        if not arrived:
            return {}
        return self._ask(lambda client: earliest_offsets(client, arrived, self._options.client))

    def _until_target(self, ends: Offsets) -> Offsets:
        """Not beyond where an AvailableNow query ends; partitions that have come since then are for the next one."""
        if self._target is None:
            return ends
        target = self._target.by_partition
        return Offsets(
            {tp: min(end, target[tp]) for tp, end in ends.by_partition.items() if tp in target}, ends.topic_ids
        )

    def reportLatestOffset(self) -> Document | None:
        return None if self._latest is None else self._latest.document()

    # ---- rows

    def partitions(self, start: Document, end: Document) -> list[InputPartition]:
        until = read_document(end)
        if until is None:
            return []
        begun = read_document(start)
        if begun is None:
            if not until.is_from_start:
                check_first(until)
                return []  # the first batch, which only finds out where to begin
            begun = self._ask(lambda client: resolve_start(client, self._options, until))
        return partitions_for(ranges_between(self._with_strangers(begun, until), until), until, self._options)

    def _with_strangers(self, begun: Offsets, until: Offsets) -> Offsets:
        """In a batch that the connector has logged, new partitions are read from their first record. (What this source
        has logged without ids looks alike: there the first record is where the batch ends.)"""
        new = [tp for tp in sorted(until.by_partition) if begun.get(tp) is None]
        begins = self._begins([tp for tp in new if tp.topic not in until.topic_ids])
        report(late_arrivals(begins, begun), is_failure=self._options.fail_on_data_loss)
        return replace(begun, by_partition={**begun.by_partition, **begins})

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        begin_task(partition.planned_by)
        return read_range(self._options, partition.wanted, partition.topic_id, self._columns)

    # ---- the group, and the end

    def commit(self, end: Document) -> None:
        done = read_document(end)
        if done is not None:
            self._tell_group(done)

    def stop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _tell_group(self, done: Offsets) -> None:
        group_id = self._options.group_id
        news = {tp: offset for tp, offset in done.by_partition.items() if self._told.get(tp) != offset}
        if group_id is None or not news:
            return
        try:
            complaints = self._linked().once(lambda client: commit_group(client, group_id, news), COMMIT_TIMEOUT_S)
        except (ClientError, TimeoutError) as error:
            complaints = [str(error) or "no answer in time"]
        if not complaints:
            self._told.update(news)
        elif complaints[0] != self._complaint:
            self._complaint = complaints[0]
            _log.warning("group %s was not told how far the query is: %s", group_id, complaints[0])

    def _linked(self) -> Link:
        if self._link is None:
            self._link = Link(self._options.client)
        return self._link

    def _ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        return self._linked().run(question)
