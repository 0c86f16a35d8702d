"""Coordinators are state machines whose memory is a log: one machine per partition of an internal topic.

    write    decide -> append -> replay -> wait until committed -> answer
    read     answer from memory; ``settled``, ``list_settled``: in slices, when what was read is committed
    load     read the partition from its start, replay every record; COORDINATOR_LOAD_IN_PROGRESS meanwhile

``decide`` looks at the machine and returns records and an answer; only ``replay`` changes what the records stand for,
so that the live path and the restart path are the same. Nothing is awaited between the three first steps: whoever
decides next sees what was decided before, committed or not, and answers leave in the order of the log: also one that
writes nothing itself waits until everything is committed that it may have seen (``settled`` is such a read). What
``decide`` reserved is released by ``on_failed`` when its records are not committed, whatever the reason.

A crash forgets what was never appended; what was appended and not answered may be found again after it. A machine that
meets a record it can't read keeps its partition closed, loudly: half a state would be worse than none.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Sequence
from struct import error as StructError
from typing import Any, Generic, Protocol, TypeVar

from headpond.coordination.home import CoordinatorHome, Ended, Producer
from headpond.coordination.partition import partition_for
from headpond.coordination.records import CoordinatorRecord, RecordCodec
from headpond.coordination.slices import Finish, Work
from headpond.model import BrokerError, ErrorCode
from headpond.ports import Clock, Tasks

_log = logging.getLogger(__name__)

SLICE_RECORDS = 500
"""Replayed at a stretch while loading, batches counted as well, or as many as the home gives at once; then the loop
turns (about 3 ms)."""

A = TypeVar("A")


class Decision(Generic[A]):
    """What to write, and what to say once it is committed."""

    __slots__ = ("answer", "on_committed", "on_failed", "producer", "records")

    def __init__(
        self,
        answer: A,
        records: Sequence[CoordinatorRecord] = (),
        *,
        producer: Producer | None = None,
        on_committed: Callable[[], None] | None = None,
        on_failed: Callable[[ErrorCode], None] | None = None,
    ) -> None:
        self.answer = answer
        self.records = records
        self.producer = producer
        self.on_committed = on_committed
        self.on_failed = on_failed


class Machine(Protocol):
    """The state of one partition. Synchronous; owns no task and no file; timers come from the clock it was given."""

    def replay(self, record: CoordinatorRecord, producer: Producer | None) -> None:
        """Make ``record`` true; with a producer: once its transaction is committed."""

    def replay_end(self, ended: Ended) -> None:
        """A transaction is over: what it wrote counts, or never happened."""

    def loaded(self) -> None:
        """Everything is replayed: set the timers."""

    def close(self) -> None:
        """This broker does not lead the partition any more: end the timers, let those who wait go."""


M = TypeVar("M", bound=Machine)


class ShardState(enum.Enum):
    LOADING = "loading"
    ACTIVE = "active"
    BROKEN = "broken"


class Shard(Generic[M]):
    def __init__(self, partition: int, leader_epoch: int, machine: M) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.machine = machine
        self.state = ShardState.LOADING
        self.end_offset = 0
        """Of what was appended; ``committed_end_offset``: of what is known to be committed."""
        self.committed_end_offset = 0


class CoordinatorRuntime(Generic[M]):
    def __init__(
        self,
        name: str,
        *,
        home: CoordinatorHome,
        codec: RecordCodec,
        make_machine: Callable[[int], M],
        partition_count: Callable[[], int | None],
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        """``make_machine`` is given the partition; ``partition_count``: None while the topic does not exist."""
        self._name = name
        self._home = home
        self._codec = codec
        self._make_machine = make_machine
        self._partition_count = partition_count
        self._clock = clock
        self._tasks = tasks
        self._shards: dict[int, Shard[M]] = {}
        self._one_at_a_time = asyncio.Lock()

    # --- what handlers call

    async def write(self, key: str, decide: Callable[[M], Decision[A]]) -> A:
        """Raises ``BrokerError``: what ``decide`` raised, or that this broker can't answer for ``key`` now."""
        shard = self._active(self._partition_of(key))
        return await self.write_in(shard, decide)

    async def write_in(self, shard: Shard[M], decide: Callable[[M], Decision[A]]) -> A:
        while not self._home.has_room(shard.partition):
            await self._home.make_room(shard.partition)
            self._require(shard)
        answered: asyncio.Future[A] = asyncio.get_running_loop().create_future()

        def done(answer: A | None, error: BrokerError | None) -> None:
            if answered.done():
                return  # nobody waits any more
            if error is not None:
                answered.set_exception(error)
            else:
                answered.set_result(answer)  # type: ignore[arg-type]

        self._write(shard, decide, done)
        return await answered

    def write_now(
        self, key: str, decide: Callable[[M], Decision[A]], done: Callable[[A | None, BrokerError | None], None]
    ) -> bool:
        """The same without a task, where there is room: ``done(answer, None)`` or ``done(None, error)`` is called once,
        now or later. False: there is no room; nothing has happened."""
        try:
            shard = self._active(self._partition_of(key))
            if not self._home.has_room(shard.partition):
                return False
        except BrokerError as refused:
            done(None, refused)
            return True
        self._write(shard, decide, done)
        return True

    def _write(
        self, shard: Shard[M], decide: Callable[[M], Decision[A]], done: Callable[[A | None, BrokerError | None], None]
    ) -> None:
        try:
            decision = decide(shard.machine)
        except BrokerError as refused:
            done(None, refused)
            return
        decided = _Decided(self, shard, decision, done)
        try:
            if decision.records:
                shard.end_offset = self._append(shard, decision)
            elif shard.end_offset <= shard.committed_end_offset:
                decided.finish(None)
                return
            decided.end_offset = shard.end_offset
            self._home.when_committed(shard.partition, shard.end_offset, decided)
        except BrokerError as failed:
            decided.failed(failed)
        except Exception:  # a bug: what was reserved for it is free again
            _release(decision, ErrorCode.UNKNOWN_SERVER_ERROR)
            raise

    def is_current(self, shard: Shard[M]) -> bool:
        return self._shards.get(shard.partition) is shard

    def write_soon(self, shard_partition: int, what: str, decide: Callable[[M], Decision[None]]) -> None:
        """For timers: the same as a task. A no-op if the shard has been unloaded by then."""

        async def write() -> None:
            shard = self._shards.get(shard_partition)
            if shard is not None and shard.state is ShardState.ACTIVE:
                try:
                    await self.write_in(shard, decide)
                except BrokerError as failed:
                    _log.warning("%s of %s-%d failed: %s", what, self._name, shard_partition, failed)

        self._tasks.spawn(what, write())

    async def settled(self, key: str, look: Callable[[M], Work[A]], finish: Finish) -> A:
        """What ``look`` finds, once it is committed: an answer that a crash can't take back."""
        shard = self._active(self._partition_of(key))
        found = await finish(look(shard.machine))
        if not await self._is_settled(shard, shard.end_offset):
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        return found

    def read(self, key: str, look: Callable[[M], A]) -> A:
        return look(self._active(self._partition_of(key)).machine)

    def machines(self) -> list[M]:
        """Those that are loaded, by partition: for what concerns all groups, or all transactions."""
        return [self._shards[partition].machine for partition in sorted(self._shards) if self._is_active(partition)]

    def check_all_loaded(self) -> None:
        """Raise ``BrokerError`` while a partition that this broker leads can't be looked into: a list with holes would
        be taken for a whole one."""
        if self.is_loading:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if any(shard.state is ShardState.BROKEN for shard in self._shards.values()):
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    async def list_settled(self, look: Callable[[M], Work[Sequence[A]]], finish: Finish) -> list[A]:
        """What ``look`` finds in all machines, once it is committed. Partitions that this broker stops leading
        meanwhile are left out: they are another's to list. Raises ``BrokerError``, as ``check_all_loaded`` does."""
        self.check_all_loaded()
        found = []
        for shard in [self._shards[partition] for partition in sorted(self._shards)]:
            rows = await finish(look(shard.machine))
            found.append((shard, shard.end_offset, rows))
        listed: list[A] = []
        for shard, end_offset, rows in found:
            if await self._is_settled(shard, end_offset):
                listed += rows
        return listed

    async def _is_settled(self, shard: Shard[M], end_offset: int) -> bool:
        """False: another broker leads by now."""
        if end_offset > shard.committed_end_offset:
            try:
                await self._home.committed(shard.partition, end_offset)
            except BrokerError as failed:
                error = _coordinator_error(failed)
                if error.code is ErrorCode.NOT_COORDINATOR:
                    return False
                raise error from failed
            shard.committed_end_offset = max(shard.committed_end_offset, end_offset)
        return self.is_current(shard)

    @property
    def is_loading(self) -> bool:
        return any(shard.state is ShardState.LOADING for shard in self._shards.values())

    # --- what the broker calls when leadership moves

    def lead(self, partition: int, leader_epoch: int) -> None:
        shard = self._shards.get(partition)
        if shard is not None:
            if shard.leader_epoch == leader_epoch or shard.state is ShardState.ACTIVE:
                shard.leader_epoch = leader_epoch  # the same log goes on
                return
            self.resign(partition)
        shard = Shard(partition, leader_epoch, self._make_machine(partition))
        self._shards[partition] = shard
        self._tasks.spawn(f"load {self._name}-{partition}", self._load(shard))

    def resign(self, partition: int) -> None:
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.machine.close()

    def is_serving(self, partition: int) -> bool:
        """Whether ``ended`` would be heard: a marker that is appended while the partition is loaded might be missed."""
        return partition in self._shards and self._is_active(partition)

    def ended(self, partition: int, ended: Ended) -> None:
        """A marker was appended to the partition."""
        shard = self._shards.get(partition)
        if shard is not None and shard.state is ShardState.ACTIVE:
            shard.machine.replay_end(ended)

    # --- inside

    def _append(self, shard: Shard[M], decision: Decision[A]) -> int:
        try:
            data = [self._codec.encode(record) for record in decision.records]
        except (ValueError, StructError) as failed:  # a string too long, or a number too large
            _log.warning("%s-%d: a record can't be written: %s", self._name, shard.partition, failed)
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "a record can't be written") from failed
        end_offset = self._home.append(shard.partition, data, decision.producer)
        for record in decision.records:
            shard.machine.replay(record, decision.producer)
        return end_offset

    async def _load(self, shard: Shard[M]) -> None:
        async with self._one_at_a_time:  # so that a turn of the loop holds one slice, however many partitions there are
            if self._shards.get(shard.partition) is not shard:
                return
            try:
                await self._replay_all(shard)
            except Exception:
                shard.state = ShardState.BROKEN
                _log.exception("%s-%d can't be loaded; what it holds is not served", self._name, shard.partition)
                return
            if self._shards.get(shard.partition) is shard:
                shard.state = ShardState.ACTIVE
                shard.machine.loaded()

    async def _replay_all(self, shard: Shard[M]) -> None:
        machine, decode, count = shard.machine, self._codec.decode, 0
        async for batch in self._home.read(shard.partition):
            count += 1  # also a marker, or a batch that compaction has emptied: they are small, and there may be many
            if isinstance(batch, Ended):
                machine.replay_end(batch)
            else:
                replay, producer = machine.replay, batch.producer
                for key, value in batch.records:
                    record = decode(key, value)
                    if record is not None:
                        replay(record, producer)
                count += len(batch.records)
            if count >= SLICE_RECORDS:
                count = 0
                await self._clock.sleep(0)
                if self._shards.get(shard.partition) is not shard:
                    return

    def _partition_of(self, key: str) -> int:
        count = self._partition_count()
        if count is None:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        return partition_for(key, count)

    def _active(self, partition: int) -> Shard[M]:
        shard = self._shards.get(partition)
        if shard is None or shard.state is ShardState.BROKEN:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        if shard.state is ShardState.LOADING:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _is_active(self, partition: int) -> bool:
        return self._shards[partition].state is ShardState.ACTIVE

    def _require(self, shard: Shard[M]) -> None:
        """After waiting: this broker still leads, with the same machine."""
        if not self.is_current(shard):
            raise BrokerError(ErrorCode.NOT_COORDINATOR)


class _Decided(Generic[A]):
    """Waits until what was decided is committed, and then says so."""

    __slots__ = ("_decision", "_done", "_is_over", "_runtime", "_shard", "end_offset")

    def __init__(
        self,
        runtime: CoordinatorRuntime[M],
        shard: Shard[M],
        decision: Decision[A],
        done: Callable[[A | None, BrokerError | None], None],
    ) -> None:
        self._runtime: CoordinatorRuntime[Any] = runtime
        self._shard: Shard[Any] = shard
        self._decision = decision
        self._done = done
        self._is_over = False
        self.end_offset = 0

    def reached(self) -> None:
        if self._is_over:
            return
        shard = self._shard
        if not self._runtime.is_current(shard):
            self.finish(BrokerError(ErrorCode.NOT_COORDINATOR))
            return
        shard.committed_end_offset = max(shard.committed_end_offset, self.end_offset)
        self.finish(None)

    def failed(self, error: BrokerError) -> None:
        if not self._is_over:
            self.finish(_coordinator_error(error))

    def finish(self, error: BrokerError | None) -> None:
        self._is_over = True
        decision = self._decision
        if error is not None:
            _release(decision, error.code)
            self._done(None, error)
            return
        try:
            if decision.on_committed is not None:
                decision.on_committed()
        except Exception:  # a bug, which must not keep others from being told that wait at the same partition
            _log.exception("what follows a decision of %s failed", self._shard.partition)
            self._done(None, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self._done(decision.answer, None)


def _release(decision: Decision[A], code: ErrorCode) -> None:
    if decision.on_failed is not None:
        decision.on_failed(code)


_AS_COORDINATOR = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def _coordinator_error(failed: BrokerError) -> BrokerError:
    """What went wrong with the log, in the words that a coordinator's clients understand."""
    return BrokerError(_AS_COORDINATOR.get(ErrorCode(failed.code), ErrorCode(failed.code)), str(failed))
