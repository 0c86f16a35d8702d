"""The response of a fetch: what its session still has to tell, and where the leaders are, if somebody asked wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.broker.handlers.fetch_open import Fetch
from penstock.broker.handlers.fetch_wire import FIRST_WITH_LEADER_HINTS, PartitionData, encode
from penstock.broker.slots import Slot


def answer(fetch: Fetch, results: Sequence[PartitionData], slot: Slot | None) -> None:
    """Send the response; ``slot``: its place in the connection's order, None while the request is being served."""
    session_id = 0
    session = fetch.session
    if session is not None:
        session_id = session.id
        if fetch.session_is_new:
            for data in results:
                session.remember(data)
        else:
            results = session.select(results)
    hints = (
        fetch.version >= FIRST_WITH_LEADER_HINTS
        and fetch.replica_id < 0
        and any(data.current_leader for data in results)
    )
    parts = encode(
        fetch.version,
        fetch.correlation_id,
        results,
        session_id=session_id,
        endpoints=(fetch.endpoint(),) if hints else (),
    )
    if slot is not None:
        slot.complete(parts)
    else:
        fetch.connection.respond(*parts)
