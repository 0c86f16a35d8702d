"""One cleaning of one log, in the worker process: finds the latest record of each key, and copies what stays.

    1  read the dirty part, from the first dirty offset on, until its end or until the map of keys is full
    2  read everything from the log's start to there once more, group of segments by group, and write each group's
       records that stay into one new segment; a single segment that loses nothing is left as it is

A generator: after every few megabytes and after every group it waits to be asked for more, so that the broker
decides the pace, swaps each group in before the next is begun, and may stop at any step. It changes nothing but
``.cleaned`` files of its own.

Promises    the latest record of each key below the end stays, unless it is a tombstone whose time is over; so does
            every record that the map does not reach. Offsets never change. The batch with a producer's last sequence
            and the last batch of all stay, if only as headers; segments of which nothing stays are left empty. Records
            of aborted transactions go, and hide nobody else's. A transaction's marker stays as long as there are
            batches of it, and then as long as a tombstone would: who has read a record of it may still have to learn
            of its end.
Memory      the map (``map_bytes_max``, exceeded by one batch at most), plus a few reads and writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from headpond.ports import FileSystem
from headpond.protocol.records.header import HEADER_BYTES, NO_TIMESTAMP, BatchHeader, read_header
from headpond.protocol.records.reader import read_payload
from headpond.storage.compaction.batch_walk import walk
from headpond.storage.compaction.filtering import filter_batch, without_records
from headpond.storage.compaction.grouping import group_segments
from headpond.storage.compaction.job import Cleaned, CleanedSegment, CleaningJob, Progress, SegmentToClean, Step
from headpond.storage.compaction.key_map import ALIVE, DEAD, LIVE_TOMBSTONE, KeyMap
from headpond.storage.compaction.keys import read_keys
from headpond.storage.compaction.output import CleanedFiles, remove_unfinished
from headpond.storage.folder import names
from headpond.storage.producers.snapshot import decode_snapshot
from headpond.storage.producers.txn_index import AbortedTxn
from headpond.storage.producers.txn_index import decode_prefix as decode_aborted
from headpond.storage.producers.txn_index import encode as encode_aborted

STEP_BYTES = 4 * 1024 * 1024
"""How much is read and written between two steps: a tenth of a second's work at most, on an ordinary disk."""


def clean(fs: FileSystem, job: CleaningJob) -> Iterator[Step]:
    """Blocking. The last step is ``Cleaned``. Raises ``CorruptBatch`` for what no broker should have stored."""
    remove_unfinished(fs, job.path)
    return _Cleaning(fs, job).steps()


class _Cleaning:
    def __init__(self, fs: FileSystem, job: CleaningJob) -> None:
        self._fs = fs
        self._job = job
        self._map = KeyMap(job.map_bytes_max)
        self._producers = {entry.producer_id: entry for entry in decode_snapshot(job.producers)}
        self._aborts = decode_aborted(job.aborted)
        self._aborted = _Aborted(self._aborts)
        self._in_transaction: set[int] = set()  # producers with batches of a transaction that has not ended yet
        self._ends_gone: set[int] = set()  # offsets of abort markers that went
        self._map_end_offset = job.first_dirty_offset
        self._number = 0  # of the next record of the dirty part, in the second reading
        self._unreported_bytes = 0
        self._bytes_read = self._bytes_written = self._records_read = self._records_kept = 0

    def steps(self) -> Iterator[Step]:
        job = self._job
        yield from self._map_keys()
        self._map.settle()
        segments = [segment for segment in job.segments if segment.base_offset < self._map_end_offset]
        for group in group_segments(
            segments,
            bytes_max=job.segment_bytes_max,
            index_bytes_max=job.index_bytes_max,
            interval_bytes=job.index_interval_bytes,
        ):
            yield from self._clean_group(group, last=segments[-1])
        yield self._progress()  # the rest: small logs have their share in the pace, too
        yield Cleaned(
            self._map_end_offset, self._bytes_read, self._bytes_written, self._records_read, self._records_kept
        )

    # --- first reading ------------------------------------------------------------------------------------------------

    def _map_keys(self) -> Iterator[Step]:
        job, key_map = self._job, self._map
        for segment in job.segments:
            if segment.end_offset <= job.first_dirty_offset:
                continue
            for header, batch in self._batches(segment):
                if header.last_offset < job.first_dirty_offset:
                    continue
                if key_map.is_full and self._map_end_offset > job.first_dirty_offset:  # one batch at least
                    return
                if self._has_keys(header):
                    key_map.add(*read_keys(read_payload(batch, header), header.count))
                self._map_end_offset = header.last_offset + 1
                if self._unreported_bytes >= STEP_BYTES:
                    yield self._progress()
            self._map_end_offset = segment.end_offset  # offsets behind its last batch are nobody's

    def _has_keys(self, header: BatchHeader) -> bool:
        return not header.is_control and not self._aborted.has(header)

    # --- second reading -----------------------------------------------------------------------------------------------

    def _clean_group(self, group: list[SegmentToClean], last: SegmentToClean) -> Iterator[Step]:
        job = self._job
        files: CleanedFiles | None = None
        if len(group) > 1:
            files = CleanedFiles(self._fs, job.path, group[0].base_offset, job.index_interval_bytes)
        try:
            for segment in group:
                position = 0
                for header, batch in self._batches(segment):
                    start, position = position, position + header.size_bytes
                    # Not that of each segment: librdkafka gives up a partition after ten answers without a record.
                    is_last = segment is last and position == segment.size_bytes
                    result = self._filter(batch, header, is_last=is_last)
                    if result is not batch and files is None:
                        files = self._copy_start(segment, start)
                    if result is not None and files is not None:
                        self._write(files, result)
                    if self._unreported_bytes >= STEP_BYTES:
                        yield self._progress()
            if files is not None:
                yield self._finish(files, group)
        finally:
            if files is not None:
                files.abandon()

    def _copy_start(self, segment: SegmentToClean, size_bytes: int) -> CleanedFiles:
        """The first change of a segment that is cleaned alone: what lies before it is copied now."""
        job = self._job
        files = CleanedFiles(self._fs, job.path, segment.base_offset, job.index_interval_bytes)
        for _, batch in self._batches(segment._replace(size_bytes=size_bytes)):
            self._write(files, batch)
        return files

    def _filter(self, batch: bytes, header: BatchHeader, *, is_last: bool) -> bytes | bytearray | None:
        """What of the batch is written."""
        self._records_read += header.count
        if header.is_transactional and not header.is_control:
            self._in_transaction.add(header.producer_id)
        if header.base_offset >= self._map_end_offset:
            result: bytes | bytearray | None = batch
        elif header.is_control:
            result = self._filter_marker(batch, header)
        elif self._aborted.has(header):
            result = None
        elif header.last_offset < self._job.first_dirty_offset:
            result = self._filter_clean(batch, header)
        else:
            verdicts = self._map.verdicts(self._number, header.count)
            self._number += header.count
            result = self._apply(batch, header, verdicts)
        if result is None and (is_last or self._is_producers_last(header)):
            result = batch if len(batch) == HEADER_BYTES else without_records(header)
        if result is not None:
            self._records_kept += header.count if result is batch else read_header(result).count
        return result

    def _filter_marker(self, batch: bytes, header: BatchHeader) -> bytes | bytearray | None:
        if not header.count:
            return None
        if header.producer_id in self._in_transaction:
            self._in_transaction.discard(header.producer_id)
            return batch
        result = self._apply(batch, header, bytearray((LIVE_TOMBSTONE,)))
        if result is None:
            self._ends_gone.add(header.base_offset)
        return result

    def _filter_clean(self, batch: bytes, header: BatchHeader) -> bytes | bytearray | None:
        """A batch of the part that was cleaned before: whatever key the dirty part has, too, goes."""
        payload = read_payload(batch, header)
        keys, tombstones = read_keys(payload, header.count)
        newer = self._map.keys
        if not tombstones and None not in keys and newer.isdisjoint(keys):
            return batch if keys else None
        verdicts = bytearray(DEAD if key is None or key in newer else ALIVE for key in keys)
        for number in tombstones:
            if verdicts[number]:
                verdicts[number] = LIVE_TOMBSTONE
        return self._apply(batch, header, verdicts, payload)

    def _apply(
        self,
        batch: bytes,
        header: BatchHeader,
        verdicts: bytearray,
        payload: bytes | None = None,
    ) -> bytes | bytearray | None:
        return filter_batch(
            batch,
            header,
            verdicts,
            now_ms=self._job.now_ms,
            delete_retention_ms=self._job.delete_retention_ms,
            payload=payload,
        )

    def _is_producers_last(self, header: BatchHeader) -> bool:
        """Without it, a producer's next batch would look out of order after a restart (or an old one would pass)."""
        last = self._producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    # --- files --------------------------------------------------------------------------------------------------------

    def _batches(self, segment: SegmentToClean) -> Iterator[tuple[BatchHeader, bytes]]:
        path = f"{self._job.path}/{names.file_name(segment.base_offset, names.LOG)}"
        file = self._fs.open(path, writable=False)
        try:
            for header, batch in walk(file, segment.size_bytes, self._job.read_bytes):
                self._bytes_read += len(batch)
                self._unreported_bytes += len(batch)
                yield header, batch
        finally:
            file.close()

    def _write(self, files: CleanedFiles, batch: bytes | bytearray) -> None:
        header = read_header(batch)
        # A header alone tells the largest timestamp of records that are gone: nobody shall look for them here.
        files.add(batch, header.last_offset, header.max_timestamp if header.count else NO_TIMESTAMP)
        self._bytes_written += len(batch)
        self._unreported_bytes += len(batch)

    def _finish(self, files: CleanedFiles, group: list[SegmentToClean]) -> CleanedSegment:
        ends = range(group[0].base_offset, group[-1].end_offset)
        aborted = [each for each in self._aborts if each.last_offset in ends]
        kept = [each for each in aborted if each.last_offset not in self._ends_gone]
        segment = files.finish(encode_aborted(kept))
        assert segment.max_timestamp is not None
        return CleanedSegment(
            [each.base_offset for each in group],
            group[-1].end_offset,
            segment.size_bytes,
            segment.first_timestamp,
            segment.max_timestamp,
            segment.max_timestamp_offset,
            [each.last_offset for each in aborted if each.last_offset in self._ends_gone],
        )

    def _progress(self) -> Progress:
        done, self._unreported_bytes = self._unreported_bytes, 0
        return Progress(done)


class _Aborted:
    """Which batches belong to transactions that were aborted."""

    def __init__(self, transactions: list[AbortedTxn]) -> None:
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        for each in sorted(transactions, key=lambda each: each.first_offset):
            self._ranges.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))

    def has(self, header: BatchHeader) -> bool:
        if not header.is_transactional or not (ranges := self._ranges.get(header.producer_id)):
            return False
        slot = bisect_right(ranges, (header.base_offset, 1 << 63)) - 1
        return slot >= 0 and header.base_offset <= ranges[slot][1]
