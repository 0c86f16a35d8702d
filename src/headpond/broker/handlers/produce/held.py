"""What must happen before a produce request takes effect, off the loop: looking into records, making room in logs,
asking a transaction's coordinator.

The request's bytes stay with its connection, which is held; when the work is done the request is served again from its
start, with what was learnt (``Prepared``). Nothing of it has been appended meanwhile, so nothing can be appended twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from headpond.broker.handlers.produce.transactional import Admitted, Word
from headpond.broker.handlers.produce.wire import Result
from headpond.broker.replicas.replicas import Replica
from headpond.model import StorageFailed
from headpond.protocol.records.header import BatchHeader
from headpond.storage.admission.admission import BatchRefused
from headpond.storage.admission.in_looks import admit_with_look
from headpond.storage.looks.looks import Look

Place = tuple[int, int]
"""Topic number, and the number of the partition in the topic."""
Room = tuple[Replica, int, int]
"""(replica, size in bytes, max timestamp) of a batch that its log has no room for yet."""


class NeedsLook(NamedTuple):
    """A batch whose records must be looked at (or compressed anew) first: nothing for the loop."""

    at: Place
    replica: Replica
    records: bytes


class Prepared:
    """What a held-back request has learnt before it is served again."""

    __slots__ = ("looked_at", "out_of_room", "since_s", "words")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s  # when the request came, for the metrics
        self.looked_at: dict[Place, tuple[memoryview, BatchHeader] | BatchRefused] = {}
        self.out_of_room: dict[Replica, StorageFailed] = {}
        self.words: dict[Replica, Word] = {}

    def keep_rewritten(self, outcomes: Sequence[Sequence[Result | Admitted]], first: int = 0) -> None:
        """Batches whose timestamps were set in place are admitted already, and must not be taken for the client's.
        ``first``: the number of the first topic in the request."""
        for topic_number, outcome in enumerate(outcomes, first):
            for number, one in enumerate(outcome):
                if not isinstance(one, Result) and one[2].is_append_time:
                    self.looked_at[topic_number, number] = (memoryview(bytearray(one[1])), one[2])

    async def prepare(
        self,
        looks: Sequence[NeedsLook],
        rooms: Sequence[Room],
        look: Look,
        now_ms: int,
        *,
        zstd_allowed: bool,
        ask: Callable[[], Awaitable[dict[Replica, Word]]] | None = None,
    ) -> None:
        """``ask``: the transaction's coordinator. Last, because its verification expires."""
        for at, replica, records in looks:
            log = replica.partition.log
            try:
                self.looked_at[at] = await admit_with_look(
                    look, records, log.config, now_ms, log.tp, zstd_allowed=zstd_allowed
                )
            except BatchRefused as refused:
                self.looked_at[at] = refused
        self.out_of_room.update(await make_room(rooms, now_ms))
        if ask is not None:
            self.words.update(await ask())


async def make_room(rooms: Sequence[Room], now_ms: int) -> dict[Replica, StorageFailed]:
    """Returns where there is none to be had."""
    failures: dict[Replica, StorageFailed] = {}
    for replica, size_bytes, max_timestamp in rooms:
        try:
            await replica.partition.log.make_room(size_bytes, max_timestamp, now_ms)
        except StorageFailed as failed:
            failures[replica] = failed
    return failures
