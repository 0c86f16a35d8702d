"""What a coordinator needs from the log that its state lives in; ``broker/`` implements it on the partitions that this
broker leads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from headpond.model.waits import Waiter

KeyValue = tuple[bytes | None, bytes | None]


class Producer(NamedTuple):
    """On whose behalf records are written: they count when its transaction is committed."""

    producer_id: int
    epoch: int


class Stored(NamedTuple):
    """One batch of the log, or a part of one, as a coordinator reads it back; without records where compaction has
    left nothing."""

    records: Sequence[KeyValue]
    producer: Producer | None = None


class Ended(NamedTuple):
    """A marker: that producer's transaction is over."""

    producer: Producer
    is_commit: bool


class CoordinatorHome(Protocol):
    """The partitions of one internal topic. ``BrokerError`` where this broker does not lead, or can't write."""

    def has_room(self, partition: int) -> bool:
        """Whether ``append`` may be called now; if not, ``await make_room`` first."""

    async def make_room(self, partition: int) -> None: ...

    def append(self, partition: int, records: Sequence[KeyValue], producer: Producer | None) -> int:
        """Append one batch; returns the end offset that ``committed`` waits for. Never waits itself."""

    async def committed(self, partition: int, end_offset: int) -> None:
        """Return when everything below is durable and replicated; raises when this broker stops leading first."""

    def when_committed(self, partition: int, end_offset: int, waiter: Waiter) -> None:
        """The same without a task: ``waiter`` is told, now or later."""

    def read(self, partition: int) -> AsyncIterator[Stored | Ended]:
        """Everything that the partition holds, from its start to the end that it has when this is called."""
