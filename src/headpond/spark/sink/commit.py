"""The driver's half of exactly once: everything that the tasks have staged, in one transaction, once.

    check       the staged files are there
    begin       InitProducerId with the write's transactional id: an older driver that still runs can do nothing more,
                and what it left open is aborted
    is_done     the marker (the committed offset of a group named as the transactional id, at each topic that is
                written to; the offset is the number of the micro-batch, the metadata tells how many rows it had, and
                a checksum for people who look into it) says what was written last
    produce     the files, in the order of the tasks, several partitions side by side
    mark        the new marker, in the same transaction
    end         from here on it is written
    clean       the files, and whatever earlier attempts have left

A crash before ``end`` leaves an open transaction, which the next ``begin`` aborts; one after it leaves a marker, and
the same micro-batch, when Spark does it again, is found done. The marker is read after ``begin``, so that nobody can
write one in between.

A micro-batch is known by its number and by how many rows it has, and by nothing else. What is in them is not compared:
a query that is not deterministic may rightly give other rows when it is done again, and to refuse them would leave it
stuck for good.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Sequence
from typing import NamedTuple

from headpond.client import Client, ClientError
from headpond.client.finished import BatchProducer
from headpond.client.group_admin import GroupOffset, Groups
from headpond.client.transaction import Transaction
from headpond.model import TopicPartition
from headpond.protocol.records.checksum import crc32c
from headpond.protocol.records.header import read_header
from headpond.runtime.clock import SystemClock
from headpond.spark.kafka.link import Link
from headpond.spark.sink.errors import FENCED, SinkFailed, in_words
from headpond.spark.sink.messages import TaskDone, Write
from headpond.spark.sink.options import SinkOptions
from headpond.spark.sink.staging import Folder, StagedFile

_log = logging.getLogger("headpond.spark")

SENT_AT_ONCE_BYTES = 1024 * 1024
UNDO_S_MAX = 10.0
"""Aborting is a kindness to readers, who would wait for the transaction's time-out."""


class Marker(NamedTuple):
    number: int
    rows: int


class Commit:
    """One try. The steps are methods, in the order above."""

    def __init__(self, options: SinkOptions, location: str, write: Write, messages: Sequence[TaskDone]) -> None:
        self.options = options
        self.write = write
        self.rows = sum(message.rows for message in messages)
        self.files = [message.file for message in messages if message.file is not None]
        self.folder = Folder(location, write.folder)
        self.link = Link(options.client)
        self.transaction: Transaction | None = None

    def run(self) -> None:
        """Raises ``SinkFailed``; nothing was written then, unless it says that the outcome is unknown."""
        with self.link:
            try:
                if self.rows == 0:
                    self.is_done()
                else:
                    self.check()
                    self._write()
            except ClientError as error:
                raise in_words(error, self.write.transactional_id, self.options.transaction_timeout_ms) from error
        self.clean()

    def _write(self) -> None:
        self.begin()
        if self.is_done():
            _log.info("%s is written already: skipped", self.write)
            return
        try:
            self.produce()
            self.mark()
        except BaseException:
            self._undo()
            raise
        try:
            self.end()
        except ClientError as error:
            raise SinkFailed(
                f"nobody knows yet whether {self.write} is written: the end of its transaction was not confirmed "
                f"({error})" + ("; its next start finds out" if self.write.is_marked else "")
            ) from error

    # ---- the steps

    def check(self) -> None:
        missing = self.folder.check(self.files)
        if missing is None:
            return
        if (last := self._overtaken_by()) is not None:
            advice = ": a checkpoint is for one run at a time" if self.write.is_stream else ""
            raise SinkFailed(
                f"nothing was written: {self.write} was overtaken by another run, which has written {self._kind} "
                f"{last} and removed what was staged{advice}"
            )
        raise SinkFailed(
            f"nothing was written: the driver does not find {missing.path}, which a task has staged; give the option "
            "stagingDir, a folder that all nodes share"
        )

    def begin(self) -> None:
        async def begin(client: Client) -> Transaction:
            transaction = Transaction(
                client, self.write.transactional_id, timeout_ms=self.options.transaction_timeout_ms
            )
            await transaction.begin()
            return transaction

        self.transaction = self.link.run(begin)

    def is_done(self) -> bool:
        """``SinkFailed`` where the marker says that this can't be written any more."""
        if not self.write.is_marked:
            return False
        marker = self.link.run(self._read_marker)
        if marker is None or marker.number < self.write.number:
            return False
        if marker.number > self.write.number:
            if self.write.may_skip_older:
                return True
            raise SinkFailed(
                f"nothing was written: {self.write} comes after {self._kind} {marker.number} of it was written, so "
                "its checkpoint was set back, or another run uses it, too; use the newest checkpoint, or a new one"
            )
        if marker.rows != self.rows:
            raise SinkFailed(
                f"nothing was written: {self.write} was written before with {marker.rows} rows and has "
                f"{self.rows} now; "
                + ("use a new txnVersion" if self.write.may_skip_older else "its checkpoint was changed")
            )
        return True

    def produce(self) -> None:
        transaction = self.transaction
        assert transaction is not None
        partitions = sorted({tp for file in self.files for tp in file.targets})

        async def open_producer(client: Client) -> BatchProducer:
            await transaction.add(partitions)
            await client.metadata(sorted({tp.topic for tp in partitions}))
            return BatchProducer(client, transaction=transaction, delivery_timeout_s=self.options.delivery_timeout_s)

        producer = self.link.once(open_producer)
        try:
            rows = sum(self._produce_file(producer, file) for file in self.files)
            self.link.once(lambda _: producer.flush())
        finally:
            self.link.once(lambda _: producer.close())
        if rows != self.rows:
            raise SinkFailed(f"nothing was written: {rows} rows were staged and {self.rows} were announced")

    def mark(self) -> None:
        if not self.write.is_marked:
            return
        transaction = self.transaction
        assert transaction is not None
        # Any partition will do: the newest marker counts, wherever it is. One at each topic: brokers forget the offsets
        # of a topic that is deleted, and the rows of the others are still there.
        topics = sorted({tp.topic for file in self.files for tp in file.targets})
        note = json.dumps({"rows": self.rows, "checksum": f"{_checksum_of(self.files):08x}"})
        markers = {TopicPartition(topic, 0): GroupOffset(self.write.number, -1, note) for topic in topics}
        self.link.once(lambda _: transaction.commit_offsets(self.write.transactional_id, markers))

    def end(self) -> None:
        transaction = self.transaction
        assert transaction is not None
        self.link.once(lambda _: transaction.commit())

    def clean(self) -> None:
        if self.write.is_marked:
            self.folder.sweep(self.write.number)
        else:
            self.folder.remove()
            self.folder.sweep_old_writes(SystemClock())

    # ---- helpers

    @property
    def _kind(self) -> str:
        return "micro-batch" if self.write.is_stream else "version"

    def _overtaken_by(self) -> int | None:
        """What another run has written last, if that is this or comes after it."""
        marker = self.link.run(self._read_marker) if self.write.is_marked else None
        return None if marker is None or marker.number < self.write.number else marker.number

    def _produce_file(self, producer: BatchProducer, file: StagedFile) -> int:
        rows = size_bytes = 0
        waiting: list[tuple[TopicPartition, bytearray, int]] = []
        for tp, data in self.folder.read(file):
            count = read_header(data).count
            waiting.append((tp, data, count))
            rows += count
            size_bytes += len(data)
            if size_bytes >= SENT_AT_ONCE_BYTES:
                self.link.once(lambda _, some=waiting: producer.send(some))  # type: ignore[misc]
                waiting, size_bytes = [], 0
        self.link.once(lambda _: producer.send(waiting))
        return rows

    def _undo(self) -> None:
        transaction = self.transaction
        assert transaction is not None
        try:
            self.link.once(lambda _: transaction.abort(), UNDO_S_MAX)
        except (ClientError, TimeoutError) as error:
            if isinstance(error, ClientError) and error.code in FENCED:
                return  # whoever took over, or the coordinator, has ended it
            _log.warning("the transaction of %s stays open until it times out: %s", self.write, error)

    async def _read_marker(self, client: Client) -> Marker | None:
        group_id = self.write.transactional_id
        found = await Groups(client).offsets(group_id, require_stable=True)
        markers = [_marker_of(group_id, offset) for offset in found.values()]
        return max(markers, default=None)


def _marker_of(group_id: str, offset: GroupOffset) -> Marker:
    try:
        note = json.loads(offset.metadata)
        return Marker(offset.offset, int(note["rows"]))
    except (ValueError, KeyError, TypeError):
        raise SinkFailed(
            f"nothing was written: the group {group_id} holds an offset that is none of the sink's markers"
        ) from None


def _checksum_of(files: Sequence[StagedFile]) -> int:
    return crc32c(b"".join(struct.pack(">I", file.checksum) for file in files))
