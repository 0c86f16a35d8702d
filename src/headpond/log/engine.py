"""The log on its own loop: the broker's storage with one partition, opened, asked and closed.

Life     ``open`` takes the lock, recovers, and says whether the folder may be used; ``close`` flushes and marks it
         clean. A close that is interrupted goes on, and may be waited for again.
Failure  a failed sync gives the log up, as it does the broker: whoever waits is told, ``failure`` is set, nothing is
         written any more. The next open asks the disk and not memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from headpond.log import folder
from headpond.log.appends import BATCH_BYTES_MAX, Appends, Pending, failed
from headpond.log.errors import LogClosed, LogError, LogInUse, LogUnusable, NotAppended, OffsetOutOfRange, ReadFailed
from headpond.log.settings import LogSettings
from headpond.log.visible import Still, Visible
from headpond.log.world import World
from headpond.model import BrokerError, ErrorCode, StorageFailed, TopicId, TopicPartition
from headpond.model.ids import id_text
from headpond.ports import Buffer
from headpond.protocol.records.errors import CorruptBatch
from headpond.runtime.handover import Handover
from headpond.runtime.loop_thread import LoopThread
from headpond.storage.errors import DataFolderInUse, DataFolderUnusable
from headpond.storage.folder import names
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.lookup import FilesChanged
from headpond.storage.log.segment import Segment
from headpond.storage.manager import LogManager

NODE_ID = 1
"""A broker's default, so that it takes the folder as its own once the log is adopted."""


ATTEMPTS_MAX = 8
"""A look at the segments begins again when they were replaced meanwhile."""


class SegmentInfo(NamedTuple):
    base_offset: int
    end_offset: int
    """Exclusive."""
    size_bytes: int
    path: str
    index_entries: tuple[tuple[int, int], ...]
    """(last offset of a batch, its position in the file), one for each ``index_interval_bytes``."""


class Engine:
    def __init__(self, path: str, name: str, settings: LogSettings, thread: LoopThread, world: World) -> None:
        self.path = path
        self.tp = TopicPartition(name, 0)
        self.failure: BaseException | None = None
        self.is_closed = False  # no call may begin
        self.batch_bytes_max = min(BATCH_BYTES_MAX, settings.segment_bytes)
        self.now_ms = world.ports.clock.now_ms
        self.is_compacting = False
        self._settings = settings
        self._thread = thread
        self._world = world
        self._closing: asyncio.Task[None] | None = None
        self.manager = LogManager(path, world.ports, settings.storage_config(), self._give_up)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        ports = self._world.ports
        try:
            await self.manager.lock()
            topic_id = await ports.workers.run(folder.look, ports.fs, self.path, self.tp)
            if topic_id is None:
                topic_id = TopicId(ports.random.random_bytes(16))
            cluster_id = self.manager.cluster_id or id_text(ports.random.random_bytes(16))
            config = self._settings.log_config()
            await self.manager.open({self.tp: topic_id}, lambda _: config, cluster_id, NODE_ID)
        except DataFolderInUse as error:
            await self._close()
            raise LogInUse(f"the log {self.path} is open already, in this process or in another one") from error
        except (DataFolderUnusable, StorageFailed, OSError) as error:
            await self._close()
            raise LogUnusable(f"the log {self.path} can't be opened: {error}") from error
        except BaseException:
            await self._close()
            raise
        self._put_together()

    def _put_together(self) -> None:
        log = self.manager.get(self.tp)
        assert log is not None
        self.log: PartitionLog = log
        self.visible = Visible(log, self._thread.call_soon)
        self.appends = Appends(
            log,
            commits=self.manager.commits,
            clock=self._world.ports.clock,
            tasks=self._world.ports.tasks,
            visible=self.visible,
            batch_bytes_max=self.batch_bytes_max,
            is_durable_when_told=self._settings.flush == "ack",
        )
        self.handover: Handover[Pending] = Handover(self._thread, self.appends.turn)
        self.appends.handover = self.handover

    async def close(self) -> None:
        if self._closing is None:
            self._closing = self._world.ports.tasks.spawn("close the log", self._finish_and_close())
        await asyncio.shield(self._closing)

    async def _finish_and_close(self) -> None:
        """What was handed over before is written first."""
        self.is_closed = True
        self.handover.close()
        try:
            while not self.appends.is_idle and self.failure is None:
                self.appends.turn()
                try:
                    await self.log.flush()
                except StorageFailed:
                    break
                await asyncio.sleep(0)
            self.appends.give_up()
        finally:
            await self._close()
            self.visible.on_change()

    async def _close(self) -> None:
        try:
            await self.manager.close()
        finally:
            await self._world.close()

    def _give_up(self, error: BaseException) -> None:
        self.failure = error
        self.appends.fail(error)

    def check_working(self) -> None:
        if self.failure is not None:
            raise failed(self.failure)

    # --- asked by threads ---------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        self.check_working()
        try:
            await self.log.flush()
        except StorageFailed as error:
            raise self._in_words(error) from error

    async def first_offset_at(self, timestamp: int) -> int:
        """Of the first record that is as late; the end of what is visible if there is none."""
        end_offset = self.visible.view.end_offset
        if self.log.active is None:
            return end_offset
        try:
            found = await self.log.offset_for_timestamp(timestamp, up_to_end_offset=end_offset)
        except BrokerError as error:
            raise ReadFailed(f"the log could not be searched by time: {error.message}") from error
        return end_offset if found is None else found.offset

    async def delete_before(self, offset: int) -> int:
        self.check_working()
        view = self.visible.view
        if not 0 <= offset <= view.end_offset:
            raise OffsetOutOfRange(offset, view.start_offset, view.end_offset)
        try:
            await self.log.advance_log_start(offset)
            await self.log.delete_old_segments(self._world.ports.clock.now_ms())
        except StorageFailed as error:
            raise self._in_words(error) from error
        return self.log.log_start_offset

    async def apply_retention(self) -> int:
        self.check_working()
        try:
            return await self.log.delete_old_segments(self._world.ports.clock.now_ms())
        except StorageFailed as error:
            raise self._in_words(error) from error

    async def segments(self) -> list[SegmentInfo]:
        for _ in range(ATTEMPTS_MAX):
            try:
                return [await self._described(segment) for segment in [*self.log.segments]]
            except FilesChanged:
                continue
            except StorageFailed as error:
                raise ReadFailed(error.message) from error
        raise ReadFailed("the segments kept changing while they were looked at")

    async def _described(self, segment: Segment) -> SegmentInfo:
        segment.pin()
        try:
            await self.log.reads.load(segment)
            index, base = segment.index, segment.base_offset
            assert index is not None
            entries = tuple(
                (base + at, position) for at, position in zip(index.relative_offsets, index.positions, strict=True)
            )
        finally:
            segment.unpin()
        path = f"{self.log.path}/{names.file_name(base, names.LOG)}"
        return SegmentInfo(base, segment.end_offset, segment.size_bytes, path, entries)

    async def read_file(self, still: Still, position: int, size: int) -> Buffer:
        """What is not in memory; the file is pinned by ``still``."""
        assert still.file is not None
        return await self._world.ports.workers.run(still.file.read, position, size)

    async def rebuild(self, offset: int, end_offset: int) -> None:
        """The broker's own cold read: it makes an index anew that led astray. Raises ``CorruptBatch``."""
        try:
            await self.log.read_cold(offset, up_to_end_offset=end_offset, size_bytes_max=1, at_least_one_batch=True)
        except StorageFailed as error:
            raise ReadFailed(error.message) from error
        except BrokerError as error:
            if error.code is not ErrorCode.CORRUPT_MESSAGE:
                raise
            raise CorruptBatch(error.message) from error
        self.visible.refresh()

    def _in_words(self, error: StorageFailed) -> LogError:
        if self.failure is not None:
            return failed(self.failure)
        if self.is_closed:
            return LogClosed("the log was closed meanwhile")
        return NotAppended(message=error.message)


def started(path: str, name: str, settings: LogSettings, make_world: Callable[[], World], thread: LoopThread) -> Engine:
    """Opened, on its loop. The thread is closed if that fails."""

    async def start() -> Engine:
        engine = Engine(path, name, settings, thread, make_world())
        await engine.open()
        return engine

    try:
        return thread.call(start())
    except BaseException:
        thread.close()
        raise
