"""How a Fetch response leaves: small ones in one write, large parts read and written one after the other.

A plan (``Planned``) says where records lie and how many bytes they are, so the frame's size is known before they are
read. Once a part of it has been sent the response can't become an error any more: data that turns out not to be in
memory is read by a worker while the response waits, and a disk that fails then closes the connection.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.broker.handlers.fetch_open import Fetch
from penstock.broker.handlers.fetch_wire import FIRST_WITH_LEADER_HINTS, Part, PartitionData, encode
from penstock.broker.slots import Slot
from penstock.model import StorageFailed
from penstock.ports import Buffer, Tasks, Workers
from penstock.storage.reads import Planned


class FetchSender:
    def __init__(self, tasks: Tasks, workers: Workers) -> None:
        self._tasks = tasks
        self._workers = workers

    def send(self, fetch: Fetch, results: Sequence[PartitionData], slot: Slot | None) -> None:
        """Send the response, at once if its turn has come. Large parts are read and written one after the other: the
        client is busy with the first while the next is read, and what was read is still in the processor's cache when
        it is written."""
        connection = fetch.connection
        parts = _response(fetch, results)
        streams = connection.may_write_now(slot)
        collected: list[Buffer] = []
        emit = connection.write_now if streams else collected.append
        for number, part in enumerate(parts):
            if not isinstance(part, Planned):
                emit(part)
                continue
            data = _in_memory(part)
            if data is None:
                self._send_rest_soon(fetch, slot or connection.park(), collected, parts[number:], streams=streams)
                return
            emit(data)
        if slot is not None:
            slot.complete(collected)
        elif not streams:
            connection.respond(*collected)

    def _send_rest_soon(
        self, fetch: Fetch, slot: Slot, collected: list[Buffer], rest: Sequence[Part], *, streams: bool
    ) -> None:
        """Some data has left memory since it was planned, and the response may have begun: a worker reads the rest."""
        for part in rest:
            if isinstance(part, Planned):
                part.segment.pin()

        async def send() -> None:
            emit = fetch.connection.write_now if streams else collected.append
            waiting = list(rest)
            try:
                while waiting and not fetch.connection.closed:
                    part = waiting[0]
                    emit(await self._workers.run(_read_pinned, part) if isinstance(part, Planned) else part)
                    if isinstance(part, Planned):
                        part.segment.unpin()
                    del waiting[0]
            except (OSError, StorageFailed):
                # The response's size is promised already; there is no way to say what went wrong.
                fetch.connection.abort()
            finally:
                for part in waiting:
                    if isinstance(part, Planned):
                        part.segment.unpin()
                slot.complete(collected)

        self._tasks.spawn("send cold data", send())


def _response(fetch: Fetch, results: Sequence[PartitionData]) -> list[Part]:
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
    return encode(
        fetch.version,
        fetch.correlation_id,
        results,
        session_id=session_id,
        endpoints=(fetch.listener_endpoint,) if hints else (),
    )


def _in_memory(planned: Planned) -> Buffer | None:
    try:
        return planned.read_nowait()
    except OSError:
        return None  # the worker meets it again, and knows what to do


def _read_pinned(planned: Planned) -> bytes:
    """Blocking."""
    file = planned.segment.file
    data = file.read(planned.position, planned.size_bytes) if file is not None else b""
    if len(data) != planned.size_bytes:
        raise StorageFailed(message=f"{planned.segment} is shorter than it was")
    return data
