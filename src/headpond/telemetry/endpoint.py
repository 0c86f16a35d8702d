"""The metrics port: ``/metrics``, ``/healthz`` and ``/readyz`` over HTTP, beside the broker and never in its way.

    /metrics   everything in the registry, written in slices: the loop turns after each, and a client that does not
               read is waited for without collecting on
    /healthz   200 as long as the process can do its work; 503 and the reason when it can't
    /readyz    200 while clients are served; 503 and the reason before and after

Whoever comes to this port is a guest: few connections, small requests, time limits on everything. A client that sends
garbage, sends nothing, or never reads costs a socket for some seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

from headpond.ports import Clock, Listener, Network, Tasks, TimerHandle
from headpond.telemetry import http
from headpond.telemetry.accept import choose
from headpond.telemetry.exposition import exposition
from headpond.telemetry.families import Registry
from headpond.telemetry.metrics import Counter

log = logging.getLogger("headpond.telemetry")

CONNECTIONS_MAX = 16
"""Two scrapers and some probes at once, and room. When it is full, one that is not being answered makes place."""
REQUEST_S_MAX = 5.0
"""A request must be there within this time."""
STALL_S_MAX = 10.0
"""A client that reads nothing for this long is disconnected."""
ANSWER_S_MAX = 60.0
"""An answer must be taken within this time: scrapers give up after 10 s, and one that takes a byte now and then would
keep its place without end."""
UNSENT_BYTES_MAX = 65_536
"""Beyond it, collecting waits for the client."""

Verdict = Callable[[], str | None]
"""Why not; None: all is well."""


class MetricsEndpoint:
    def __init__(
        self,
        *,
        network: Network,
        clock: Clock,
        tasks: Tasks,
        registry: Registry,
        before_scrape: Callable[[], Awaitable[None]],
        unhealthy: Verdict,
        unready: Verdict,
    ) -> None:
        self.scrape_failures = Counter()
        self.clock = clock
        self.tasks = tasks
        self.unhealthy = unhealthy
        self.unready = unready
        self._network = network
        self._registry = registry
        self._before_scrape = before_scrape
        self._listener: Listener | None = None
        self._guests: dict[_Guest, None] = {}

    async def listen(self, host: str, port: int) -> int:
        """Accept guests; returns the port, which with 0 the system chose."""
        self._listener = await self._network.listen(host, port, lambda: _Guest(self))
        return self._listener.port

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        for guest in list(self._guests):
            guest.drop()

    async def scrape(self, accept: str) -> AsyncIterator[bytes]:
        """The content type, then the slices of the text, with a turn of the loop after each."""
        await self._before_scrape()
        format = choose(accept)
        yield format.content_type.encode()
        for part in exposition(self._registry, format, self.scrape_failures):
            if part:
                yield part
            await self.clock.sleep(0)

    # --- called by guests

    def arrived(self, guest: _Guest) -> bool:
        """Whether there is place for it."""
        if len(self._guests) >= CONNECTIONS_MAX:
            idle = next((each for each in self._guests if not each.is_being_answered), None)
            if idle is None:
                return False
            idle.drop()
            self.left(idle)
        self._guests[guest] = None
        return True

    def left(self, guest: _Guest) -> None:
        self._guests.pop(guest, None)


class _Guest(asyncio.Protocol):
    """One connection: one request, one answer, the end."""

    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self._endpoint = endpoint
        self._has_asked = False
        self._has_no_more = False
        self._is_answered = False
        self._reader = http.RequestReader()
        self._timer: TimerHandle | None = None
        self._deadline: TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None
        self._room: asyncio.Future[None] | None = None  # what the answer waits for while the client does not read
        self._is_gone = False

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)
        if self._endpoint.arrived(self):
            self._within(REQUEST_S_MAX, self._too_slow)
        else:
            self.drop()

    def data_received(self, data: bytes) -> None:
        if self._has_asked or self._is_gone:
            return  # what comes after its request is read and forgotten
        try:
            request = self._reader.receive(data)
        except http.BadRequest as wrong:
            self._answer(http.plain_response(wrong.status, wrong.why))
            return
        if request is not None:
            self._has_asked = True
            self._serve(request)

    def eof_received(self) -> bool:
        self._has_no_more = True
        return self.is_being_answered  # half-closed after its request: it still wants the answer

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_gone = True
        self._endpoint.left(self)
        self._cancel_timer()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        if self._answering is not None:
            self._answering.cancel()

    def pause_writing(self) -> None:
        self._room = asyncio.get_running_loop().create_future()
        self._within(STALL_S_MAX, self.drop)

    def resume_writing(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        self._room = None
        if not self._is_answered:
            self._cancel_timer()

    @property
    def is_being_answered(self) -> bool:
        return self._has_asked and not self._is_answered

    # --- answers

    def _serve(self, request: http.Request) -> None:
        self._cancel_timer()
        self._deadline = self._endpoint.clock.call_later(ANSWER_S_MAX, self.drop)
        with_body = request.method == "GET"
        if request.path not in ("/metrics", "/healthz", "/readyz"):
            self._answer(http.plain_response(404, "there are /metrics, /healthz and /readyz", with_body=with_body))
        elif request.method not in ("GET", "HEAD"):
            self._answer(http.plain_response(405, "GET and HEAD are served", more={"Allow": "GET, HEAD"}))
        elif request.path == "/metrics":
            self._answering = self._endpoint.tasks.spawn("answer a scrape", self._send_metrics(request))
        else:
            endpoint = self._endpoint
            why = endpoint.unhealthy() if request.path == "/healthz" else endpoint.unready()
            self._answer(http.plain_response(200 if why is None else 503, why or "ok", with_body=with_body))

    async def _send_metrics(self, request: http.Request) -> None:
        has_body = request.method == "GET"
        try:
            parts = self._endpoint.scrape(request.accept)
            fields = {"Content-Type": (await anext(parts)).decode()}
            if request.takes_chunks:
                fields["Transfer-Encoding"] = "chunked"
            await self._send(http.response_head(200, fields))
            if has_body:
                async for part in parts:
                    if self._is_gone:
                        return
                    await self._send(http.chunk(part) if request.takes_chunks else part)
                if request.takes_chunks:
                    await self._send(http.chunk(b""))
            self._finish()
        except Exception:
            log.exception("a scrape met a bug; its connection is closed")
            self.drop()

    async def _send(self, data: bytes) -> None:
        if self._room is not None:
            await self._room
        if not self._is_gone and not self._transport.is_closing():
            self._transport.write(data)

    def _answer(self, data: bytes) -> None:
        self._has_asked = True
        self._transport.write(data)
        self._finish()

    def _finish(self) -> None:
        """Say that this was all, and wait for the client to close: to close first would throw away what it sent and has
        not been read yet, and with it the answer (the kernel then sends a reset)."""
        self._is_answered = True
        if self._is_gone:
            return
        if self._has_no_more:
            self._transport.close()
        else:
            self._transport.write_eof()
        self._within(STALL_S_MAX, self.drop)

    def drop(self) -> None:
        self._cancel_timer()
        self._transport.abort()

    def _too_slow(self) -> None:
        self._answer(http.plain_response(408, f"a request must be there within {REQUEST_S_MAX:.0f} s"))

    def _within(self, seconds: float, otherwise: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self._endpoint.clock.call_later(seconds, otherwise)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
