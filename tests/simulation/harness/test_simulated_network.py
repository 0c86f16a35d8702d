"""The network: order, pieces, back-pressure, garbage in shared memory, and every way in which a connection ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from simulation.harness.loop import Life, SimulatedLoop
from simulation.harness.net import (
    GARBAGE,
    KERNEL_BUFFER_BYTES,
    HostNetwork,
    Machine,
    SimulatedNetwork,
    SimulatedTransport,
)

SHARED = bytearray(1 << 16)


class Peer(asyncio.BufferedProtocol):
    """Keeps what comes, and copies it as it should."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.reads = 0
        self.views: list[memoryview] = []
        self.lost: list[Exception | None] = []
        self.is_paused = False
        self.stays_after_eof = False
        self.has_eof = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimulatedTransport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(SHARED)

    def buffer_updated(self, nbytes: int) -> None:
        self.reads += 1
        self.received += SHARED[:nbytes]
        self.views.append(memoryview(SHARED)[:nbytes])

    def eof_received(self) -> bool:
        self.has_eof = True
        return self.stays_after_eof

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False


class Rig:
    def __init__(self, seed: int) -> None:
        self.loop = SimulatedLoop(random.Random(seed))
        self.network = SimulatedNetwork(self.loop, random.Random(seed))
        self.server, self.server_life = self._host("server")
        self.client, self.client_life = self._host("client")
        self.accepted: list[Peer] = []

    def _host(self, name: str) -> tuple[Machine, Life]:
        return self.network.add(name), self.loop.new_life(name)

    def accept(self) -> Peer:
        self.accepted.append(Peer())
        return self.accepted[-1]

    async def listen(self) -> None:
        await HostNetwork(self.network, self.server, self.server_life).listen("server", 9, self.accept)

    async def connect(self) -> Peer:
        here = HostNetwork(self.network, self.client, self.client_life)
        _, peer = await here.connect("server", 9, Peer)
        await asyncio.sleep(0.01)
        assert isinstance(peer, Peer)
        return peer

    async def pair(self) -> tuple[Peer, Peer]:
        await self.listen()
        mine = await self.connect()
        return mine, self.accepted[-1]


def run(main: Callable[[Rig], Awaitable[Any]], seed: int = 1) -> Any:
    rig = Rig(seed)
    found = rig.loop.run(main(rig), until_s=1_000)  # type: ignore[arg-type]
    assert rig.loop.errors == []
    return found


def test_bytes_arrive_in_order_in_pieces_and_after_a_while() -> None:
    async def main(rig: Rig) -> int:
        mine, theirs = await rig.pair()
        sent = b"".join(b"%06d" % number for number in range(500))
        for at in range(0, len(sent), 60):
            mine.transport.write(sent[at : at + 60])
        assert theirs.received == b""
        await asyncio.sleep(5)
        assert theirs.received == sent
        return theirs.reads

    assert run(main) > 30


def test_two_connections_do_not_keep_each_others_order() -> None:
    async def main(rig: Rig) -> str:
        first, _ = await rig.pair()
        second = await rig.connect()
        order: list[str] = []
        for peer, name in zip(rig.accepted, "ab", strict=True):
            peer.buffer_updated = lambda nbytes, name=name: order.append(name)  # type: ignore[method-assign]
        for _ in range(4):
            first.transport.write(b"x")
            second.transport.write(b"x")
        await asyncio.sleep(1)
        return "".join(order)

    assert len({run(main, seed) for seed in range(12)}) > 2


def test_shared_memory_is_garbage_after_each_read() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        mine.transport.write(b"precious")
        await asyncio.sleep(1)
        assert theirs.received == b"precious"
        assert bytes(theirs.views[-1]) == GARBAGE * len(theirs.views[-1])

    run(main)


def test_memory_of_a_connections_own_is_left_alone() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        own = HostNetwork(rig.network, rig.server, rig.server_life).buffer(64)
        theirs.get_buffer = lambda sizehint: memoryview(own)  # type: ignore[method-assign]
        theirs.buffer_updated = lambda nbytes: None  # type: ignore[method-assign]
        mine.transport.write(b"k")
        await asyncio.sleep(1)
        assert own[:1] == b"k"

    run(main)


def test_a_reader_that_pauses_makes_the_writer_pause_until_it_reads_again() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        theirs.transport.pause_reading()
        mine.transport.set_write_buffer_limits(high=10_000)
        data = bytes(KERNEL_BUFFER_BYTES + 10_001)
        mine.transport.write(data)
        assert mine.is_paused
        await asyncio.sleep(5)
        assert mine.is_paused
        assert theirs.received == b""
        theirs.transport.resume_reading()
        await asyncio.sleep(5)
        assert theirs.received == data
        assert not mine.is_paused

    run(main)


def test_a_cut_link_holds_one_direction_and_delivers_in_order_when_it_is_mended() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        rig.network.cut("client", "server")
        for number in range(20):
            mine.transport.write(b"%02d" % number)
        theirs.transport.write(b"back")
        await asyncio.sleep(30)
        assert theirs.received == b""
        assert mine.received == b"back"
        rig.network.mend("client", "server")
        await asyncio.sleep(5)
        assert theirs.received == b"".join(b"%02d" % number for number in range(20))

    for seed in range(10):
        run(main, seed)


def test_what_is_under_way_when_a_link_is_mended_does_not_overtake_what_was_held() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        rig.network.cut("client", "server")
        mine.transport.write(b"held ")
        await asyncio.sleep(30)
        mine.transport.write(b"under way")
        rig.network.mend("client", "server")
        await asyncio.sleep(5)
        assert theirs.received == b"held under way"

    for seed in range(10):
        run(main, seed)


def test_a_stall_holds_the_connections_that_there_are_and_no_new_ones() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        go_on = rig.network.stall("client", "server")
        mine.transport.write(b"late ")
        newer = await rig.connect()
        newer.transport.write(b"new")
        await asyncio.sleep(5)
        assert (theirs.received, rig.accepted[-1].received) == (b"", b"new")
        mine.transport.write(b"later")
        go_on()
        await asyncio.sleep(5)
        assert theirs.received == b"late later"

    run(main)


def test_closing_delivers_what_was_written_and_then_the_end() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        mine.transport.write(b"last words")
        mine.transport.close()
        await asyncio.sleep(1)
        assert theirs.received == b"last words"
        assert theirs.has_eof
        assert mine.lost == theirs.lost == [None]

    run(main)


def test_half_a_close_leaves_the_other_direction_open() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        theirs.stays_after_eof = True
        mine.transport.write_eof()
        await asyncio.sleep(1)
        assert theirs.has_eof
        theirs.transport.write(b"answer")
        await asyncio.sleep(1)
        assert mine.received == b"answer"

    run(main)


def test_a_killed_process_resets_its_connections() -> None:
    async def main(rig: Rig) -> None:
        mine, _ = await rig.pair()
        rig.server_life.end()
        rig.network.process_ended(rig.server, is_silent=False)
        await asyncio.sleep(1)
        (error,) = mine.lost
        assert isinstance(error, ConnectionResetError)
        with pytest.raises(ConnectionRefusedError):
            await rig.connect()

    run(main)


def test_a_machine_without_power_is_silent_and_resets_old_connections_when_it_is_back() -> None:
    async def main(rig: Rig) -> None:
        mine, _ = await rig.pair()
        rig.server_life.end()
        rig.server.has_power = False
        rig.network.process_ended(rig.server, is_silent=True)
        mine.transport.write(b"hello?")
        connecting = asyncio.ensure_future(rig.connect())
        await asyncio.sleep(60)
        assert mine.lost == []
        assert not connecting.done()
        rig.server.has_power = True
        rig.server_life = rig.loop.new_life("server again")
        await rig.listen()
        mine.transport.write(b"hello?")
        await connecting
        await asyncio.sleep(1)
        (error,) = mine.lost
        assert isinstance(error, ConnectionResetError)

    run(main)


def test_a_paused_process_gets_everything_late() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        rig.server_life.pause(10)
        mine.transport.write(b"x")
        await asyncio.sleep(9)
        assert theirs.received == b""
        await asyncio.sleep(2)
        assert theirs.received == b"x"

    run(main)


def test_a_slow_link_is_slow_until_it_is_healed() -> None:
    async def main(rig: Rig) -> None:
        mine, theirs = await rig.pair()
        rig.network.slow("client", "server", 3.0)
        mine.transport.write(b"a")
        await asyncio.sleep(2.9)
        assert theirs.received == b""
        await asyncio.sleep(0.5)
        assert theirs.received == b"a"
        rig.network.heal()
        mine.transport.write(b"b")
        await asyncio.sleep(0.5)
        assert theirs.received == b"ab"

    run(main)
