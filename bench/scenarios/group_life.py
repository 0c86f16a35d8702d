"""The life of groups, member by member over raw sockets: what heartbeats cost, how long a rebalance takes."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable

from ..harness import Bench, watched
from ..measure import Bar, Metric, Sample, Samples, Scenario
from ..servers import OURS, START_MAX_S, Headpond, Kafka, Server
from ..wire import RequestFailed, Wire, text
from .groups import NO_COORDINATOR_YET, find_coordinator

JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14
REBALANCE_IN_PROGRESS = 27
GROUPS, MEMBERS = 1_000, 3
GATHERING_MS = 3_000  # for a group's first generation: the brokers' default
HEARTBEAT_INTERVAL_S = 3.0  # the clients' default
CROWD = 50
EAGER_INTERVAL_S = 0.1
SUBSCRIPTION = struct.pack(">hi", 0, 1) + text("t") + struct.pack(">i", 0)

CORE = Metric("core_percent", "% of a core", "lower", 1)
SETTLED = Metric("settled_s", "s from the last join to the last assignment", "lower", 3)


class Member:
    """One member of a classic group on a connection of its own."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.id = ""
        self.generation = -1
        self.group_size = 0  # known to the leader only
        self.settled_s = 0.0
        self.is_settled = False
        self._correlation = 0

    async def connect(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(self, api: int, version: int, body: bytes) -> bytes:
        self._correlation += 1
        request = struct.pack(">hhi", api, version, self._correlation) + text("bench") + body
        self._writer.write(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return (await self._reader.readexactly(size))[4:]

    async def join(self) -> None:
        """And sync, again and again until an assignment has come."""
        self.is_settled = False
        while not self.is_settled:
            body = text(self.group) + struct.pack(">ii", 45_000, 60_000) + text(self.id) + text("consumer")
            protocols = struct.pack(">i", 1) + text("range") + struct.pack(">i", len(SUBSCRIPTION)) + SUBSCRIPTION
            answer = Answer(await self.ask(JOIN_GROUP, 3, body + protocols))
            answer.skip(4)
            code = answer.i16()
            if code in NO_COORDINATOR_YET and not self.id:
                await asyncio.sleep(0.01)
                continue
            if code:
                raise RequestFailed(f"JoinGroup: error {code}")
            self.generation = answer.i32()
            answer.text()
            answer.text()
            self.id = answer.text()
            members = []
            for _ in range(answer.i32()):
                members.append(answer.text())
                answer.skip(answer.i32())
            self.group_size = len(members)
            await self._sync(members)

    async def _sync(self, members: list[str]) -> None:
        given = b"".join(text(member) + struct.pack(">i", 4) + b"mine" for member in members)
        answer = Answer(await self.ask(SYNC_GROUP, 2, self._who() + struct.pack(">i", len(members)) + given))
        answer.skip(4)
        code = answer.i16()
        if code not in (0, REBALANCE_IN_PROGRESS):
            raise RequestFailed(f"SyncGroup: error {code}")
        self.is_settled = not code
        self.settled_s = time.monotonic()

    async def heartbeat(self) -> None:
        answer = Answer(await self.ask(HEARTBEAT, 2, self._who()))
        answer.skip(4)
        code = answer.i16()
        if code == REBALANCE_IN_PROGRESS:
            await self.join()
        elif code:
            raise RequestFailed(f"Heartbeat: error {code}")

    def close(self) -> None:
        self._writer.close()

    def _who(self) -> bytes:
        return text(self.group) + struct.pack(">i", self.generation) + text(self.id)


class Answer:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def skip(self, size: int) -> None:
        self._at += size

    def i16(self) -> int:
        self._at += 2
        return int.from_bytes(self._data[self._at - 2 : self._at], "big", signed=True)

    def i32(self) -> int:
        self._at += 4
        return int.from_bytes(self._data[self._at - 4 : self._at], "big", signed=True)

    def text(self) -> str:
        size = self.i16()
        self._at += max(size, 0)
        return self._data[self._at - max(size, 0) : self._at].decode()


async def heartbeats(server: Server, seconds: float) -> Sample:
    members = [Member(f"hearts-{number // MEMBERS}") for number in range(GROUPS * MEMBERS)]
    for member in members:
        await member.connect(server.port)
    await _in_time(asyncio.gather(*(member.join() for member in members)))
    if [member.group_size for member in members if member.group_size] != [MEMBERS] * GROUPS:
        raise RequestFailed("a group has not come together in its first generation")
    started = time.monotonic() + 1
    end = started + seconds

    async def live(number: int, member: Member) -> None:
        beat = started + HEARTBEAT_INTERVAL_S * number / len(members)
        while beat < end:
            await asyncio.sleep(beat - time.monotonic())
            await member.heartbeat()
            beat += HEARTBEAT_INTERVAL_S

    lives = asyncio.gather(*(live(number, member) for number, member in enumerate(members)))
    await asyncio.sleep(started - time.monotonic())
    with watched(server) as used:
        await lives
    for member in members:
        member.close()
    return {"core_percent": 100 * used["cpu_s"] / used["seconds"]}


async def rebalance(server: Server) -> Sample:
    """All but one are in; then the last one joins, and the others learn of it by their heartbeats."""
    group = f"crowd-{time.monotonic_ns()}"
    members = [Member(group) for _ in range(CROWD)]
    for member in members:
        await member.connect(server.port)
    last = members[-1]

    async def live(member: Member) -> None:
        await member.join()
        while True:
            await asyncio.sleep(EAGER_INTERVAL_S)
            await member.heartbeat()

    async def until_settled(crowd: list[Member]) -> None:
        while True:
            for ended in (task for task in lives if task.done()):
                ended.result()  # a life ends by failing only
            if all(member.is_settled and member.generation == crowd[0].generation for member in crowd):
                return
            await asyncio.sleep(0.002)

    lives = [asyncio.ensure_future(live(member)) for member in members[:-1]]
    await _in_time(until_settled(members[:-1]))
    joined = time.monotonic()
    lives.append(asyncio.ensure_future(live(last)))
    await _in_time(until_settled(members))
    for task in lives:
        task.cancel()
    await asyncio.gather(*lives, return_exceptions=True)
    for member in members:
        member.close()
    return {"settled_s": max(member.settled_s for member in members) - joined}


async def _in_time(joins: Awaitable[object]) -> None:
    try:
        await asyncio.wait_for(joins, START_MAX_S)
    except TimeoutError:
        raise RequestFailed(f"members without an assignment after {START_MAX_S} s") from None


def _on_fresh(bench: Bench, first_join_waits_ms: int, load: Callable[[Server], Awaitable[Sample]]) -> Samples:
    def one_run(name: str) -> Sample:
        with bench.fresh(name) as server:
            assert isinstance(server, Headpond | Kafka)
            server.settings = (*server.settings, f"group.initial.rebalance.delay.ms={first_join_waits_ms}")
            server.start()
            with Wire.connect(server.port, time.monotonic() + START_MAX_S) as wire:
                find_coordinator(wire, "g", time.monotonic() + START_MAX_S)
            return asyncio.run(_one(load, server))

    return bench.in_turns(bench.alone(*OURS, "kafka"), one_run)


async def _one(load: Callable[[Server], Awaitable[Sample]], server: Server) -> Sample:
    return await load(server)


SCENARIOS = (
    Scenario(
        "heartbeats",
        "1,000 groups with 3 members each",
        "raw sockets, a connection per member, all three in their group's first generation; each sends a heartbeat "
        "every 3 s",
        (CORE,),
        (Bar("at most 10 % of a core", CORE, absolute=10.0),),
        lambda bench: _on_fresh(bench, GATHERING_MS, lambda server: heartbeats(server, max(6.0, bench.plan.run_s))),
    ),
    Scenario(
        "rebalance-50",
        "a classic group of 50 rebalances",
        "raw sockets, 49 members in a group with heartbeats every 0.1 s, then the last one joins; "
        "group.initial.rebalance.delay.ms=0",
        (SETTLED,),
        (Bar("at most 1 s", SETTLED, absolute=1.0),),
        lambda bench: _on_fresh(bench, 0, rebalance),
    ),
)
