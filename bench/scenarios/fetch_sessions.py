"""What a long poll in a fetch session costs the broker, by the number of partitions that the session holds.

One partition gets a record (acks=all), the poll that waits is answered with it, the next one names that partition. The
CPU of the same produces without a session is taken off.
"""

from __future__ import annotations

import struct
import time

from ..harness import Bench, watched
from ..measure import Bar, Metric, Sample, Samples, Scenario
from ..servers import OURS, START_MAX_S, Server
from ..wire import RequestFailed, Wire, text

FETCH, VERSION = 1, 11
TOPIC, NOT_READ = "sessions", "others"
SIZES = (1, 100, 667, 5_000)
LARGE = "667 partitions"
WAIT_MS = 30_000
CPU_PER_FETCH = Metric("cpu_ms_per_fetch", "CPU-ms per delivered fetch", "lower", 3)


def _name(partitions: int, server: str) -> str:
    name = f"{partitions} partition{'s' if partitions > 1 else ''}"
    return name if server == "headpond" else f"{name}, {server}"


class Session:
    """A consumer of the first partitions of the topic, which has read all that there is."""

    def __init__(self, wire: Wire, partitions: int) -> None:
        self._wire = wire
        self._id = self._epoch = 0
        self._read_on: list[int] = []
        self._ends = [1] * partitions  # each has one record, from when the topic was made
        self._send(list(range(partitions)), wait_ms=0)
        self._id = int(struct.unpack_from(">i", wire.receive(), 6)[0])
        if not self._id:
            raise RequestFailed("no fetch session was opened")
        for _ in range(2):  # it has been told of all, and has nothing to tell
            self._send([], wait_ms=0)
            wire.receive()

    def poll(self) -> None:
        self._send(self._read_on, wait_ms=WAIT_MS)

    def polled(self, partition: int) -> None:
        """The answer has come: with the record that was just appended there."""
        answer = self._wire.receive()
        code, _, topics = struct.unpack_from(">hii", answer, 4)
        if code or topics != 1:
            raise RequestFailed(f"fetch: error {code}, {topics} topics")
        rows, index = struct.unpack_from(">ii", answer, 14 + 2 + len(TOPIC))
        if (rows, index) != (1, partition):
            raise RequestFailed(f"a fetch of partition {partition} brought {rows} partitions, {index} first")
        self._ends[partition] += 1
        self._read_on = [partition]

    def _send(self, named: list[int], *, wait_ms: int) -> None:
        rows = b"".join(struct.pack(">iiqqi", index, -1, self._ends[index], -1, 1 << 20) for index in named)
        topics = text(TOPIC) + struct.pack(">i", len(named)) + rows if named else b""
        limits = struct.pack(">iiiibii", -1, wait_ms, 1, 50 << 20, 0, self._id, self._epoch)
        self._epoch += 1
        body = limits + struct.pack(">i", bool(named)) + topics + struct.pack(">i", 0) + text("")
        self._wire.send(FETCH, VERSION, body)


def _one_run(bench: Bench, kind: str, partitions: int) -> Sample:
    with bench.fresh(kind) as server:
        server.start()
        for topic in (TOPIC, NOT_READ):
            server.create_topic(topic, partitions)  # one record in each
        deadline = time.monotonic() + START_MAX_S
        with Wire.connect(server.port, deadline) as producer, Wire.connect(server.port, deadline) as consumer:
            alone = _rounds(server, producer, None, partitions, bench.plan.run_s)
            session = Session(consumer, partitions)
            _rounds(server, producer, session, partitions, bench.plan.run_s / 5)
            polled = _rounds(server, producer, session, partitions, bench.plan.run_s)
    return {"cpu_ms_per_fetch": (polled - alone) * 1_000}


def _rounds(server: Server, producer: Wire, session: Session | None, partitions: int, seconds: float) -> float:
    """CPU seconds per record, to each partition in turn."""
    topic = NOT_READ if session is None else TOPIC
    rounds = 0
    until = time.monotonic() + seconds
    with watched(server) as used:
        while time.monotonic() < until:
            partition = rounds % partitions
            if session is not None:
                session.poll()
            if code := producer.produce_one(topic, partition, acks=-1):
                raise RequestFailed(f"produce: error {code}")
            if session is not None:
                session.polled(partition)
            rounds += 1
    return used["cpu_s"] / rounds


def _fetch_sessions(bench: Bench) -> Samples:
    asked = {_name(size, kind): (kind, size) for kind in bench.alone(*OURS) for size in SIZES}
    return bench.some_runs(list(asked), bench.plan.repetitions, lambda name: _one_run(bench, *asked[name]))


SCENARIOS = (
    Scenario(
        "fetch-session",
        "a long poll in a fetch session, one partition changed",
        "raw sockets; a session of so many partitions polls, a record is produced to one of them (acks=all), the poll "
        "is answered and the next one names that partition; a broker of its own for each; less the CPU of the same "
        "produces alone",
        (CPU_PER_FETCH,),
        (Bar("at most 0.2 ms of CPU per delivered fetch", CPU_PER_FETCH, absolute=0.2, subject=LARGE),),
        _fetch_sessions,
    ),
)
