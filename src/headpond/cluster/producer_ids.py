"""Producer ids, handed out from blocks that are taken off the store before their first id is used.

Promises   no id is handed out twice, by any broker, ever: a crash (or an unsure store) loses the rest of a block, which
           costs nothing, for there are 2^63 ids.
"""

from __future__ import annotations

import asyncio

from headpond.cluster import keys
from headpond.cluster.rows import ProducerIdBlockRow, decode, encode
from headpond.model import BrokerError, ErrorCode, OutcomeUnknown, StorageFailed
from headpond.ports import Clock, Committed, Compare, MetadataStore, Put

BLOCK_SIZE = 1_000
ATTEMPTS_MAX = 16
RETRY_S = 0.05


class ProducerIds:
    def __init__(self, store: MetadataStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next = 0
        self._end = 0
        self._one_at_a_time = asyncio.Lock()

    async def take(self) -> int:
        """The next id. COORDINATOR_NOT_AVAILABLE, which clients retry, when the store does not give a block."""
        while (producer_id := self.take_nowait()) is None:
            await self.have_some()
        return producer_id

    def take_nowait(self) -> int | None:
        """The next id, if there is one at hand."""
        if self._next == self._end:
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def have_some(self) -> None:
        """Return when there is an id at hand. Raises as ``take`` does."""
        if self._next == self._end:
            async with self._one_at_a_time:
                if self._next == self._end:  # else somebody fetched the block while we waited for our turn
                    self._next, self._end = await self._take_block()

    async def keep_above(self, producer_id: int) -> None:
        """Never hand out an id up to ``producer_id``: logs of another cluster know it. A producer that was given it
        anew would find its first batches taken for duplicates of that one's."""
        while self._end <= producer_id:
            async with self._one_at_a_time:
                self._next, self._end = await self._take_block(above=producer_id)

    async def _take_block(self, *, above: int = -1) -> tuple[int, int]:
        for _ in range(ATTEMPTS_MAX):
            try:
                entry = await self._store.get(keys.PRODUCER_ID_BLOCK)
                row = decode(entry.key, entry.value, ProducerIdBlockRow) if entry is not None else None
                first = max(row.next if row is not None else 0, above + 1)
                outcome = await self._store.transact(
                    [Compare(keys.PRODUCER_ID_BLOCK, entry.mod_revision if entry is not None else 0)],
                    [Put(keys.PRODUCER_ID_BLOCK, encode(ProducerIdBlockRow(first + BLOCK_SIZE)))],
                )
            except (OutcomeUnknown, StorageFailed):  # perhaps that block is ours, perhaps not: leave it
                await self._clock.sleep(RETRY_S)
                continue
            if isinstance(outcome, Committed):
                return first, first + BLOCK_SIZE
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The metadata store gave no block of producer ids.")
