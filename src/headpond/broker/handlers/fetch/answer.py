"""The response of a fetch: session changes, and leader hints for misdirected requests."""

from __future__ import annotations

from collections.abc import Sequence

from headpond.broker.handlers.fetch.wanted import Fetch
from headpond.broker.handlers.fetch.wire import FIRST_WITH_LEADER_HINTS, PartitionData, encode
from headpond.broker.net.slots import Slot
from headpond.ports import Part


def answer(fetch: Fetch, results: Sequence[PartitionData], slot: Slot | None) -> None:
    """Send the response; ``slot``: its place in the connection's order, None while the request is being served."""
    if fetch.session is not None:
        results = told(fetch, results)
    parts = response(fetch, results)
    if slot is not None:
        slot.complete(parts)
    else:
        fetch.connection.respond(*parts)


def told(fetch: Fetch, results: Sequence[PartitionData]) -> Sequence[PartitionData]:
    """Those of the results that are sent; the session remembers them."""
    session = fetch.session
    if session is None:
        return results
    if not fetch.session_is_new:
        return session.select(results)
    for data in results:
        session.remember(data)
    return results


def response(fetch: Fetch, results: Sequence[PartitionData]) -> list[Part]:
    hints = (
        fetch.version >= FIRST_WITH_LEADER_HINTS
        and fetch.replica_id < 0
        and any(data.current_leader for data in results)
    )
    return encode(
        fetch.version,
        fetch.correlation_id,
        results,
        session_id=fetch.session.id if fetch.session is not None else 0,
        endpoints=(fetch.endpoint(),) if hints else (),
    )
