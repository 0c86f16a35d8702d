"""``ports.Network`` in memory, with the faults of a real one. Time and order are the simulated loop's.

Connections     keep their order; between connections there is none, since each segment has a latency of its own.
                Writes arrive in pieces. What a receiver does not take fills the kernels' buffers, then the sender's,
                then the sender is asked to pause. Memory that connections share is overwritten after each read:
                whoever keeps a view of it reads garbage.
Faults          ``cut`` a link, in one direction: nothing arrives until ``mend``, then everything does, as TCP repeats
                what was lost. ``slow`` adds to the latency of a link. ``stall`` holds up the connections that there are
                now, in one direction, while new ones work: TCP waits longer each time before it repeats something.
Ends            A killed process: its kernel resets its connections. A machine without power says nothing; once it is
                back, it resets what it does not know. Connecting hangs while there is no power or the link is cut, and
                is refused where no one listens.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headpond.ports import Buffer, Part, Tls
from simulation.harness.loop import Life, SimulatedLoop

LATENCY_S = (0.0002, 0.002)
"""Of one segment: from, and how much more at most."""
RARE_LATENCY_S = 0.2
RARE_RATE = 0.005
SYN_RETRY_S = 1.0
KERNEL_BUFFER_BYTES = 65_536
"""What a sender's and a receiver's kernel hold between them before the sender's program notices."""
PIECES_RATE = 0.2
"""How many reads get only a part of what is there."""
GARBAGE = b"\xa5"


class OwnBuffer(bytearray):
    """Memory for one connection alone, which nobody else overwrites."""


class Segment(NamedTuple):
    number: int
    source: SimulatedTransport
    data: bytes | None
    end: str = ""  # "fin", "reset": no data, but the connection's end


class Machine:
    """What the network knows of a host: whether there is power, and the process that runs on it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_power = True
        self.listeners: dict[int, tuple[Life, Callable[[], asyncio.BaseProtocol]]] = {}
        self.transports: dict[SimulatedTransport, None] = {}


class SimulatedNetwork:
    def __init__(self, loop: SimulatedLoop, chance: random.Random) -> None:
        self.loop = loop
        self.chance = chance
        self.wire = loop.new_life("wire")
        self.machines: dict[str, Machine] = {}
        self._cut: dict[tuple[str, str], int] = {}
        self._slow_s: dict[tuple[str, str], float] = {}
        self._held: dict[tuple[str, str], list[Segment]] = {}
        self._stalled: dict[SimulatedTransport, list[Segment]] = {}
        self._next_port = 10_000

    def add(self, name: str) -> Machine:
        machine = self.machines[name] = Machine(name)
        return machine

    # --- faults

    def cut(self, source: str, target: str) -> None:
        """From one machine to another nothing arrives any more. Cuts nest."""
        self._cut[source, target] = self._cut.get((source, target), 0) + 1

    def mend(self, source: str, target: str) -> None:
        link = (source, target)
        self._cut[link] = max(0, self._cut.get(link, 0) - 1)
        if not self._cut[link]:
            for segment in sorted(self._held.pop(link, []), key=lambda each: each.number):
                self._travel(segment)

    def is_cut(self, source: str, target: str) -> bool:
        return bool(self._cut.get((source, target)))

    def slow(self, source: str, target: str, seconds: float) -> None:
        """Added to each latency; 0 ends it."""
        self._slow_s[source, target] = seconds

    def stall(self, source: str, target: str) -> Callable[[], None]:
        """Nothing that is sent on the present connections arrives, until what is returned is called."""
        machine = self.machines[source]
        chosen = [each for each in machine.transports if each.peer_name == target and each not in self._stalled]
        self._stalled.update({each: [] for each in chosen})

        def go_on() -> None:
            for each in chosen:
                for segment in self._stalled.pop(each, ()):
                    self._travel(segment)

        return go_on

    def heal(self) -> None:
        for source, target in [link for link, count in self._cut.items() if count]:
            self._cut[source, target] = 1
            self.mend(source, target)
        self._slow_s.clear()

    def process_ended(self, machine: Machine, *, is_silent: bool) -> None:
        """Its connections and listeners are gone. ``is_silent``: the power, too, so that nobody is told."""
        machine.listeners.clear()
        transports, machine.transports = machine.transports, {}
        for transport in transports:
            if not is_silent:
                transport.send_reset()
            transport.is_dead = True

    # --- segments

    def latency_s(self, source: str, target: str) -> float:
        chance = self.chance
        latency_s = LATENCY_S[0] + LATENCY_S[1] * chance.random()
        if chance.random() < RARE_RATE:
            latency_s += RARE_LATENCY_S * chance.random()
        return latency_s + self._slow_s.get((source, target), 0.0)

    def send(self, source: SimulatedTransport, data: bytes | None, end: str = "") -> None:
        segment = Segment(self.loop.next_number(), source, data, end)
        source.under_way.append(segment)
        self._travel(segment)

    def _travel(self, segment: Segment) -> None:
        source = segment.source
        at_s = self.loop.time() + self.latency_s(source.machine.name, source.peer_name)
        source.arrives_s = at_s = max(at_s, source.arrives_s)  # never before what was sent earlier
        self.loop.call_on(self.wire, at_s, self._arrive, segment)

    def _arrive(self, segment: Segment) -> None:
        source = segment.source
        link = (source.machine.name, source.peer_name)
        if source in self._stalled:
            self._stalled[source].append(segment)
        elif self.is_cut(*link) or link in self._held:
            self._held.setdefault(link, []).append(segment)
        else:
            # What was held up comes before what was sent after it, whenever that arrives.
            source.landed.add(segment.number)
            while source.under_way and source.under_way[0].number in source.landed:
                first = source.under_way.popleft()
                source.landed.discard(first.number)
                self._deliver(first)

    def _deliver(self, segment: Segment) -> None:
        source, peer = segment.source, segment.source.peer
        if peer is not None and not peer.is_dead and not peer.life.is_over:
            self.loop.call_on(peer.life, self.loop.time(), peer.arrived, segment)
        elif self.machines[source.peer_name].has_power and segment.end != "reset" and peer is not None:
            peer.send_reset()  # a connection that its kernel does not know (any more)

    # --- connections

    def listen(self, machine: Machine, life: Life, port: int, factory: Callable[[], asyncio.BaseProtocol]) -> int:
        if not port:
            self._next_port += 1
            port = self._next_port
        if port in machine.listeners:
            raise OSError(98, "address already in use")
        machine.listeners[port] = (life, factory)
        return port

    async def connect(
        self, machine: Machine, life: Life, address: tuple[str, int], factory: Callable[[], asyncio.BaseProtocol]
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        name, port = address
        await asyncio.sleep(2 * self.latency_s(machine.name, name))  # there and back
        while not self._is_reachable(machine.name, name):  # noqa: ASYNC110  as TCP does it
            await asyncio.sleep(SYN_RETRY_S)
        accepting = self.machines[name].listeners.get(port)
        if accepting is None:
            raise ConnectionRefusedError(111, "connection refused")
        there, accept = accepting
        mine = SimulatedTransport(self, machine, life, name)
        theirs = SimulatedTransport(self, self.machines[name], there, machine.name)
        mine.peer, theirs.peer = theirs, mine
        self.loop.call_on(there, self.loop.time(), theirs.begin, accept)
        protocol = mine.begin(factory)
        return mine, protocol

    def _is_reachable(self, source: str, target: str) -> bool:
        return self.machines[target].has_power and not self.is_cut(source, target) and not self.is_cut(target, source)


class SimulatedTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: SimulatedNetwork, machine: Machine, life: Life, peer_name: str) -> None:
        super().__init__()
        self.machine = machine
        self.life = life
        self.peer_name = peer_name
        self.peer: SimulatedTransport | None = None
        self.is_dead = False  # the kernel has forgotten it
        self.arrives_s = 0.0
        self.under_way: deque[Segment] = deque()  # in the order in which they were sent
        self.landed: set[int] = set()  # the numbers of those that are there, and wait for others
        self._network = network
        self._protocol: Any = None
        self._unread = bytearray()
        self._end_to_come = ""
        self._is_reading = True
        self._is_pumping = False
        self._is_closing = False
        self._is_write_closed = False
        self._unacknowledged_bytes = 0
        self._high_bytes = 65_536
        self._is_told_to_pause = False
        machine.transports[self] = None

    def begin(self, factory: Callable[[], asyncio.BaseProtocol]) -> asyncio.BaseProtocol:
        protocol = self._protocol = factory()
        protocol.connection_made(self)
        self._pump()
        return protocol

    # --- asyncio.Transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.peer_name, 1) if name == "peername" else default

    def is_closing(self) -> bool:
        return self._is_closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = 65_536 if high is None else high

    def get_write_buffer_size(self) -> int:
        return max(0, self._unacknowledged_bytes - KERNEL_BUFFER_BYTES)

    def write(self, data: Buffer) -> None:
        if self._is_closing or self._is_write_closed or not data:
            return
        self._unacknowledged_bytes += len(data)
        self._network.send(self, bytes(data))
        if self.get_write_buffer_size() > self._high_bytes and not self._is_told_to_pause:
            self._is_told_to_pause = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if not self._is_write_closed:
            self._is_write_closed = True
            self._network.send(self, None, "fin")

    def can_write_eof(self) -> bool:
        return True

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._pump_soon()

    def close(self) -> None:
        if not self._is_closing:
            self.write_eof()
            self._lose(None)

    def abort(self) -> None:
        if not self._is_closing:
            self.send_reset()
            self._lose(None)

    # --- from the wire

    def arrived(self, segment: Segment) -> None:
        if self.is_dead or self._is_closing:
            if segment.data is not None and not self.is_dead:
                self.send_reset()  # data for a program that has closed
            return
        if segment.end == "reset":
            self._lose(ConnectionResetError(104, "connection reset by peer"))
        elif segment.end:
            self._end_to_come = segment.end
        else:
            self._unread += segment.data or b""
        self._pump()

    def send_reset(self) -> None:
        self._network.send(self, None, "reset")

    def acknowledged(self, size_bytes: int) -> None:
        """The other side's program has taken so many bytes."""
        self._unacknowledged_bytes -= size_bytes
        if self._is_told_to_pause and self.get_write_buffer_size() <= self._high_bytes // 4 and not self._is_closing:
            self._is_told_to_pause = False
            self._protocol.resume_writing()

    # --- to the program

    def _pump_soon(self) -> None:
        if not self._is_pumping:
            self._is_pumping = True
            self._network.loop.call_on(self.life, self._network.loop.time(), self._pump_now)

    def _pump_now(self) -> None:
        self._is_pumping = False
        self._pump()

    def _pump(self) -> None:
        if self._protocol is None:
            return
        chance = self._network.chance
        while self._unread and self._is_reading and not self._is_closing:
            view = self._protocol.get_buffer(-1)
            count = min(len(view), len(self._unread))
            if count > 1 and chance.random() < PIECES_RATE:
                count = 1 + int(chance.random() * (count - 1))
                self._read(view, count)
                self._pump_soon()
                return
            self._read(view, count)
        if self._end_to_come and not self._unread and not self._is_closing and self._is_reading:
            self._end_to_come = ""
            if not self._protocol.eof_received():
                self.close()

    def _read(self, view: memoryview, count: int) -> None:
        view[:count] = self._unread[:count]
        del self._unread[:count]
        if self.peer is not None and not self.peer.life.is_over:
            loop = self._network.loop
            loop.call_on(self.peer.life, loop.time(), self.peer.acknowledged, count)
        self._protocol.buffer_updated(count)
        if not isinstance(view.obj, OwnBuffer):
            view[:count] = GARBAGE * count

    def _lose(self, error: Exception | None) -> None:
        self._is_closing = True
        loop = self._network.loop
        loop.call_on(self.life, loop.time(), self._lost, error)

    def _lost(self, error: Exception | None) -> None:
        self.is_dead = True
        self.machine.transports.pop(self, None)
        if self._protocol is not None:
            self._protocol.connection_lost(error)


class HostListener:
    def __init__(self, machine: Machine, port: int) -> None:
        self._machine = machine
        self.host = machine.name
        self.port = port

    async def close(self) -> None:
        self._machine.listeners.pop(self.port, None)


class HostNetwork:
    """``ports.Network`` of one process."""

    def __init__(self, network: SimulatedNetwork, machine: Machine, life: Life) -> None:
        self._network = network
        self._machine = machine
        self._life = life

    async def listen(self, host: str, port: int, factory: Callable[[], asyncio.BaseProtocol]) -> HostListener:
        return HostListener(self._machine, self._network.listen(self._machine, self._life, port, factory))

    async def connect(
        self, host: str, port: int, factory: Callable[[], asyncio.BaseProtocol], *, tls: Tls | None = None
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        assert tls is None, "TLS is not simulated"
        return await self._network.connect(self._machine, self._life, (host, port), factory)

    def send(self, transport: asyncio.WriteTransport, parts: Sequence[Part]) -> None:
        transport.writelines(
            [part if isinstance(part, bytes | bytearray | memoryview) else part.view for part in parts]
        )

    def buffer(self, size_bytes: int) -> bytearray:
        return OwnBuffer(GARBAGE * size_bytes)
