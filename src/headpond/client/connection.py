"""One connection to one broker: requests out, answers matched by correlation id.

    connection = await open_connection(address, world, timeout_s=30)     # TCP, perhaps TLS, ApiVersions, perhaps SASL
    answer = connection.send(message, timeout_s=30)                      # a future: several may be in flight
    response = await answer

Promises    Requests leave in the order in which ``send`` was called. At most ``IN_FLIGHT_MAX`` are unanswered and the
            transport's buffer stays near its high-water mark: the rest waits here. An answer larger than
            ``FRAME_BYTES_MAX``, an unsolicited one, or bytes that are no answer end the connection.
Time-outs   A request that times out raises ``RequestTimedOut``; its late answer is dropped. If nothing at all has
            arrived since it was sent, the peer is taken for dead and the connection ends.
The end     Every request in flight gets ``ConnectionLost``: whether it was carried out is unknown. What still waited
            here gets ``NotSent``.

Security    TLS is below: the Network port gives a transport that speaks it. SASL comes before anything that is sent,
            and again while the connection lives (``authentication``), between requests.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from headpond.client.errors import BrokerUnreachable, ClientError, ConnectionLost, RequestTimedOut, SecurityFailed
from headpond.client.handshake import security_failure, silent_end
from headpond.client.security import PLAINTEXT, Security
from headpond.client.versions import Versions, ask_versions
from headpond.client.waiting import within
from headpond.model import ErrorCode
from headpond.ports import Clock, Network, Random, Tasks, TimerHandle
from headpond.protocol.apis import API_VERSIONS_KEY, APIS, request_appender, response_decoder
from headpond.protocol.errors import MalformedMessage, ProtocolError, UnsupportedField
from headpond.protocol.frame import FrameReader
from headpond.protocol.frame_memory import FrameMemory
from headpond.protocol.header import decode_response_header, encode_request_header
from headpond.protocol.types import Message

IN_FLIGHT_MAX = 64
"""Unanswered requests on one connection. A broker serves them one after the other: more would only wait there."""
FRAME_BYTES_MAX = 320 * 1024 * 1024
"""The largest answer: far above what our fetches ask for, below what a peer that speaks another protocol announces
(the four letters "HTTP" are 1.2 GB, and with TLS a peer that does not understand us begins with 352 MB)."""

QUEUED_MAX = 10_000
"""Requests that wait for room: far more than our callers have, each of whom waits for its answer."""

_size = struct.Struct(">i")
_UNSUPPORTED_VERSION = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class World(NamedTuple):
    """The ports that the client stands on, and the memory that its connections read into."""

    network: Network
    clock: Clock
    tasks: Tasks
    random: Random
    client_id: str
    memory: FrameMemory
    security: Security = PLAINTEXT


class NotSent(ConnectionLost):
    """The connection ended, or time ran out, before the request left: it was not carried out."""

    @property
    def is_outcome_unknown(self) -> bool:
        return False


async def open_connection(address: Address, world: World, *, timeout_s: float) -> Connection:
    """Connected, and what the broker speaks is known; raises ``BrokerUnreachable`` within ``timeout_s``, or
    ``SecurityFailed``."""
    clock = world.clock
    until_s = clock.monotonic() + timeout_s
    opened: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
    attempt = world.tasks.spawn(f"client-connect-{address}", _open(address, world, timeout_s, opened))
    try:
        return await within(clock, until_s - clock.monotonic(), opened)
    except TimeoutError:
        raise BrokerUnreachable(f"could not reach a broker at {address}: no answer within {timeout_s:g} s") from None
    except SecurityFailed:
        raise
    except ClientError as error:
        raise BrokerUnreachable(f"could not reach a broker at {address}: {error}") from error
    except OSError as error:
        raise BrokerUnreachable(f"could not reach a broker at {address}: {reason_of(error)}") from error
    except asyncio.CancelledError:
        if opened.done() and opened.exception() is None:
            opened.result().close()  # it came a moment too late for whoever asked
        raise
    finally:
        attempt.cancel()


async def _open(address: Address, world: World, timeout_s: float, opened: asyncio.Future[Connection]) -> None:
    connection = Connection(address, world)
    try:
        if (tls := world.security.tls) is None:
            await world.network.connect(address.host, address.port, lambda: connection)
        else:
            await world.network.connect(address.host, address.port, lambda: connection, tls=tls)
        connection.versions = await ask_versions(connection, timeout_s, str(address))
        if (sasl := world.security.sasl) is not None:
            from headpond.client.authentication import Login  # a command of an open cluster starts without it

            await Login(connection, sasl, world.clock, world.tasks, world.random).begin(timeout_s)
        opened.set_result(connection)
    except (OSError, ClientError) as error:
        opened.set_exception(_judged(error, connection, world.security))
    finally:
        if not opened.done() or opened.exception() is not None:
            connection.close()


def _judged(error: OSError | ClientError, connection: Connection, security: Security) -> OSError | ClientError:
    """What a failure to open means: the connection may know more than who waited for an answer on it."""
    address = str(connection.address)
    if not isinstance(error, ConnectionLost):
        return security_failure(error, address, security) or error
    if found := security_failure(connection.lost_by, address, security):
        return found
    return silent_end(address) if security.tls is not None and connection.ended_in_silence else error


def reason_of(error: OSError) -> str:
    """The system's own words: event loops add addresses and numbers to them, each in its own way."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return (error.strerror or str(error) or type(error).__name__).lower()


class Connection(asyncio.BufferedProtocol):
    """Made by ``open_connection``; ``versions`` is what the broker speaks."""

    def __init__(self, address: Address, world: World) -> None:
        self.address = address
        self.versions = Versions(str(address))
        self._clock = world.clock
        self._client_id = world.client_id
        self._frames = FrameReader(world.memory, FRAME_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._in_flight: dict[int, _Request] = {}
        self._queued: deque[_Request] = deque()
        self._correlation_id = 0
        self._reads = 0
        self._is_paused = False  # by either of these:
        self._is_full = False
        self._is_quiet = False
        self._lost: ConnectionLost | None = None
        self.lost_by: Exception | None = None
        """What ended it, if it was not us."""
        self.ended_in_silence = False
        """By the other side, which had not said a word."""
        self.when_ended: Callable[[], None] | None = None

    @property
    def is_open(self) -> bool:
        return self._lost is None

    def send(
        self,
        message: Message,
        *,
        timeout_s: float,
        version: int | None = None,
        version_max: int | None = None,
        is_answered: bool = True,
    ) -> asyncio.Future[Any]:
        """Send one request; the future brings the response, ``RequestTimedOut``, ``ConnectionLost`` or ``NotSent``.

        ``is_answered`` False: the protocol has no answer to this one (Produce with acks 0); the future is done when it
        is written. Raises ``UNSUPPORTED_VERSION`` at once, or ``NotSent``.
        """
        if self._lost is not None:
            raise NotSent(self._lost.message)
        if len(self._queued) >= QUEUED_MAX:
            raise NotSent(f"{QUEUED_MAX} requests to {self.address} are waiting already")
        if version is None:
            version = self.versions.choose(message, version_max)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        request = _Request(self, message.KEY, version, self._correlation_id, is_answered)
        request.frame = self._frame(message, request)
        request.timer = self._clock.call_later(timeout_s, request.timed_out)
        self._queued.append(request)
        self._write_queued()
        return request.answer

    def close(self) -> None:
        """End it now; what is in flight gets ``ConnectionLost``. Closing twice does nothing."""
        self._end(ConnectionLost(f"the connection to {self.address} was closed"))

    # ---- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._lost is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._lost is None:
            self.lost_by = exc
            self.ended_in_silence = self._reads == 0
            why = f": {reason_of(exc)}" if isinstance(exc, OSError) else self._suspicion()
            self._end(ConnectionLost(f"{self.address} closed the connection{why}"))
        self._frames.release()

    def _suspicion(self) -> str:
        """A broker that asks for TLS closes at once, one that asks for SASL answers ApiVersions and nothing else."""
        answered = self._correlation_id - len(self._in_flight) - len(self._queued)
        return " before it answered anything; is security.protocol right?" if answered <= 1 else ""

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._reads += 1
        frames = self._frames
        frames.received(nbytes)
        try:
            while self._lost is None and frames.next_frame():
                # A copy, because the buffer is used again while records are still slices of the answer.
                self._answered(memoryview(bytes(frames.view[frames.start : frames.end])))
            frames.keep()
        except ProtocolError as error:
            self.lost_by = error
            self._end(ConnectionLost(f"{self.address} does not speak Kafka's protocol: {error}"))

    def pause_writing(self) -> None:
        self._is_full = self._is_paused = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._is_paused = self._is_quiet
        self._write_queued()

    # ---- a moment in which nobody else is heard

    async def become_quiet(self) -> None:
        """What is sent from now on waits until ``end_quiet``; what was sent before is answered when this returns."""
        self._is_quiet = self._is_paused = True
        if answers := [request.answer for request in self._in_flight.values() if not request.answer.done()]:
            await asyncio.wait(answers)

    def send_in_quiet(self, message: Message, *, timeout_s: float) -> asyncio.Future[Any]:
        """As ``send``, before what waits."""
        waiting, self._queued = self._queued, deque()
        self._is_paused = False
        try:
            return self.send(message, timeout_s=timeout_s)
        finally:
            self._queued = waiting
            self._is_paused = True

    def end_quiet(self) -> None:
        self._is_quiet = False
        self._is_paused = self._is_full
        self._write_queued()

    def give_up(self, why: str) -> None:
        """End it, because it is of no use any more."""
        self._end(ConnectionLost(why))

    # ---- requests and answers

    def _frame(self, message: Message, request: _Request) -> bytearray:
        frame = bytearray(4)
        frame += encode_request_header(request.key, request.version, request.correlation_id, self._client_id)
        try:
            request_appender(request.key, request.version)(frame, message)
        except UnsupportedField as error:
            raise ClientError(ErrorCode.UNSUPPORTED_VERSION, f"{self.address} is too old for this: {error}") from error
        _size.pack_into(frame, 0, len(frame) - 4)
        return frame

    def _write_queued(self) -> None:
        """Write while there is room, in order."""
        while self._queued and not self._is_paused and len(self._in_flight) < IN_FLIGHT_MAX and self._lost is None:
            request = self._queued.popleft()
            if request.answer.done():
                request.timer.cancel()
                continue  # it timed out, or its asker went away: it need not be sent
            frame, request.frame = request.frame, None
            request.reads_before = self._reads
            if request.is_answered:
                self._in_flight[request.correlation_id] = request
            assert self._transport is not None and frame is not None
            self._transport.write(frame)
            if not request.is_answered:
                request.finish(None)

    def _answered(self, frame: memoryview) -> None:
        if len(frame) < 4:
            raise MalformedMessage("an answer without a correlation id")
        (correlation_id,) = _size.unpack_from(frame)
        request = self._in_flight.get(correlation_id)
        if request is None:
            raise MalformedMessage(f"an answer to request {correlation_id}, which is not waiting for one")
        if request.answer.done():
            request.timer.cancel()  # it came too late, or its asker went away
        else:
            request.finish(_decode(frame, request.key, request.version))
        del self._in_flight[correlation_id]
        self._write_queued()

    def request_timed_out(self, request: _Request) -> None:
        if request.frame is not None:
            request.fail(NotSent(f"{self.address} took no request in time"))
            return
        request.fail(RequestTimedOut(f"no answer from {self.address} in time"))
        if self._reads == request.reads_before:
            # Not a byte since then: the peer or the way to it is gone, and TCP may take a quarter of an hour to say.
            self._end(ConnectionLost(f"{self.address} has fallen silent"))

    def _end(self, why: ConnectionLost) -> None:
        if self._lost is not None:
            return
        self._lost = why
        if self.when_ended is not None:
            self.when_ended()
        if self._transport is not None:
            self._transport.abort()
        in_flight, self._in_flight = self._in_flight, {}
        queued, self._queued = self._queued, deque()
        for request in in_flight.values():
            request.fail(ConnectionLost(why.message))
        for request in queued:
            request.fail(NotSent(why.message))


class _Request:
    """One request from ``send`` to its answer. Its frame is there until it is written."""

    __slots__ = (
        "_connection",
        "answer",
        "correlation_id",
        "frame",
        "is_answered",
        "key",
        "reads_before",
        "timer",
        "version",
    )

    def __init__(self, connection: Connection, key: int, version: int, correlation_id: int, is_answered: bool) -> None:
        self._connection = connection
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.is_answered = is_answered
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.frame: bytearray | None = None
        self.reads_before = 0
        self.timer: TimerHandle

    def finish(self, response: Any) -> None:
        self.timer.cancel()
        if not self.answer.done():
            self.answer.set_result(response)

    def fail(self, error: ClientError) -> None:
        self.timer.cancel()
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # whoever cares awaits it; nobody else is to be told at the interpreter's end

    def timed_out(self) -> None:
        self._connection.request_timed_out(self)


def _decode(frame: memoryview, key: int, version: int) -> Any:
    _, position = decode_response_header(frame, key, version)
    if key == API_VERSIONS_KEY and frame[position : position + 2] == _UNSUPPORTED_VERSION:
        version = 0  # KIP-511: a broker that does not know our version says so in the oldest one
    response, end = response_decoder(key, version)(frame, position)
    if end != len(frame):
        raise MalformedMessage(f"{len(frame) - end} bytes behind a {APIS[key].name} response")
    return response
