"""One transaction, carried through an unsure store.

A store call may end with ``OutcomeUnknown``: it took effect, or did not, or still may. Every transaction that we make
compares a key that it also writes, or may be repeated without harm, so the way out is to send the same one again:
either it commits now, or its compares fail, and then what the compared keys hold tells whether the first attempt was
what changed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from headpond.model import OutcomeUnknown
from headpond.model.backoff import Backoff
from headpond.ports import STORE_OPERATIONS_MAX, Clock, Committed, Compare, Conflict, Delete, MetadataStore, Put

T = TypeVar("T")

RETRY_FIRST_S = 0.05
RETRY_MAX_S = 1.0

Outcome = Committed | Conflict


async def transact_surely(
    store: MetadataStore, clock: Clock, compares: Sequence[Compare], writes: Sequence[Put | Delete], *, timeout_s: float
) -> Outcome:
    """Like ``store.transact``, but ``OutcomeUnknown`` comes out only when the doubt could not be settled in time."""
    deadline = clock.monotonic() + timeout_s
    backoff = Backoff(RETRY_FIRST_S, RETRY_MAX_S)
    unsure = False
    while True:
        try:
            outcome = await store.transact(compares, writes)
        except OutcomeUnknown:
            if clock.monotonic() + backoff.coming_s > deadline:
                raise
            unsure = True
            await clock.sleep(backoff.next_s())
            continue
        if unsure and isinstance(outcome, Conflict):
            revision = effect_revision(compares, writes, outcome)
            return outcome if revision is None else Committed(revision)
        return outcome


def effect_revision(compares: Sequence[Compare], writes: Sequence[Put | Delete], conflict: Conflict) -> int | None:
    """The revision of the transaction's own effect, if the compared keys that it writes hold what it would have
    written; else None. Of a transaction that only deletes, no more can be said than that it happened before the
    conflict."""
    held = {entry.key: entry for entry in conflict.entries}
    compared = {compare.key for compare in compares}
    revision = 0
    for write in writes:
        if write.key not in compared:
            continue
        entry = held.get(write.key)
        if (entry.value if entry is not None else None) != (write.value if isinstance(write, Put) else None):
            return None
        revision = max(revision, entry.mod_revision if entry is not None else conflict.revision)
    return revision or None


def chunks_of(written: Sequence[T], *, fixed_operations: int, operations_each: int = 1) -> list[Sequence[T]]:
    """Cut what is to be written so that each part, with its compares (``fixed_operations`` once, and
    ``operations_each`` per write, the write itself included), fits into one transaction."""
    size = (STORE_OPERATIONS_MAX - fixed_operations) // operations_each
    return [written[start : start + size] for start in range(0, len(written), size)]
