"""Consumer groups: durable offset commits from many connections, and how long a coordinator loads a million offsets."""

from __future__ import annotations

import selectors
import socket
import struct
import time

from ..harness import Bench, watched
from ..measure import CPU_PER_REQUEST, P50, P99, REQUESTS_PER_S, Bar, Metric, Sample, Samples, Scenario
from ..servers import OURS, RECYCLED, START_MAX_S, Server
from ..wire import RequestFailed, Wire, text

OFFSET_COMMIT, FIND_COORDINATOR, LIST_GROUPS, API_VERSIONS = 8, 10, 16, 18
COMMIT_VERSION = 7  # the last one before compact lengths
NO_COORDINATOR_YET = (14, 15, 16)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: a Kafka that has just made its internal
topic becomes the coordinator of one group after the other."""
CONNECTIONS = 64
SHORTER = 5
"""The same measuring time in five times as many runs: CPU per commit varies by half between 5 s runs of one code, so
five runs can't show a difference of a few percent."""
GROUPS, TOPICS, PARTITIONS = 1_000, 10, 100

LOAD = Metric("load_s", "s until everything is loaded", "lower", 2)
SLOWEST = Metric("slowest_ms", "ms, the slowest other request meanwhile", "lower", 1)


def commit_body(group: str, topics: dict[str, range], offset: int) -> bytes:
    """Of nobody's: a simple group."""
    body = text(group) + struct.pack(">i", -1) + text("") + text(None) + struct.pack(">i", len(topics))
    for topic, partitions in topics.items():
        rows = b"".join(struct.pack(">iqi", index, offset, -1) + text("") for index in partitions)
        body += text(topic) + struct.pack(">i", len(partitions)) + rows
    return body


def find_coordinator(wire: Wire, group: str, deadline: float) -> None:
    """And wait until it has loaded what there is."""
    while struct.unpack_from(">h", wire.ask(FIND_COORDINATOR, 2, text(group) + b"\0"), 4)[0] or _listed(wire) is None:
        if time.monotonic() > deadline:
            raise RequestFailed("no coordinator")
        time.sleep(0.01)


def _commit(wire: Wire, body: bytes, deadline: float) -> None:
    while code := _last_error(wire.ask(OFFSET_COMMIT, COMMIT_VERSION, body)):
        if code not in NO_COORDINATOR_YET or time.monotonic() > deadline:
            raise RequestFailed(f"OffsetCommit: error {code}")
        time.sleep(0.01)


def _last_error(answer: bytes) -> int:
    """An answer to OffsetCommit ends with the error of its last partition."""
    return int.from_bytes(answer[-2:], "big", signed=True)


def _listed(wire: Wire) -> int | None:
    """The number of groups; None while they are being loaded."""
    code, count = struct.unpack_from(">hi", wire.ask(LIST_GROUPS, 2, b""), 4)
    return None if code else int(count)


def commits(server: Server, topic: str, seconds: float) -> Sample:
    with Wire.connect(server.port, time.monotonic() + START_MAX_S) as wire:
        find_coordinator(wire, "g", time.monotonic() + START_MAX_S)
    with watched(server) as used:
        latencies, errors = _commit_on(server.port, topic, seconds)
    if errors or not latencies:
        raise RequestFailed(f"{errors} of {len(latencies)} commits failed")
    latencies.sort()
    return {
        "requests_per_s": len(latencies) / seconds,
        "cpu_us_per_request": used["cpu_s"] / len(latencies) * 1e6,
        "p50_us": latencies[len(latencies) // 2] * 1e6,
        "p99_us": latencies[len(latencies) * 99 // 100] * 1e6,
    }


def _commit_on(port: int, topic: str, seconds: float) -> tuple[list[float], int]:
    """Each connection has a group of its own and sends the next commit when the last one is answered. The clock starts
    once all are connected: beyond a listener's backlog (50 by default) the system tries again after a second."""
    selector = selectors.DefaultSelector()
    latencies: list[float] = []
    errors = 0
    sent: dict[int, tuple[bytes, float]] = {}
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)]
    by_number = {sock.fileno(): sock for sock in sockets}
    now = time.monotonic()
    end = now + seconds
    for number, sock in enumerate(sockets):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = commit_body(f"bench-{number}", {topic: range(1)}, 1)
        request = struct.pack(">hhi", OFFSET_COMMIT, COMMIT_VERSION, number) + text("bench") + body
        selector.register(sock, selectors.EVENT_READ)
        sent[sock.fileno()] = struct.pack(">i", len(request)) + request, now
        sock.sendall(sent[sock.fileno()][0])
    try:
        while now < end:
            for key, _ in selector.select(1):
                sock = by_number[key.fd]
                answer = sock.recv(4_096)  # one small answer: it comes whole
                now = time.monotonic()
                frame, started = sent[sock.fileno()]
                errors += _last_error(answer) != 0
                latencies.append(now - started)
                sent[sock.fileno()] = frame, now
                sock.sendall(frame)
    finally:
        for sock in sockets:
            sock.close()
        selector.close()
    return latencies, errors


def _commits(bench: Bench) -> Samples:
    names = bench.servers(*OURS, "kafka", "kafka-fsync")
    topic = bench.new_topic(names)
    bench.warm_up(names, lambda server, seconds: commits(server, topic, seconds))
    run_s = bench.plan.run_s / SHORTER
    runs = bench.plan.repetitions * SHORTER
    return bench.some_runs(names, runs, lambda name: commits(bench.server(name), topic, run_s))


def load_once(server: Server) -> Sample:
    """Fill, kill, start, and ask for something else every millisecond until all groups are there."""
    server.start()
    names = [f"t{number}" for number in range(TOPICS)]
    with Wire.connect(server.port, time.monotonic() + START_MAX_S) as wire:
        for name in names:
            wire.create_topic(name, PARTITIONS, RECYCLED)
        find_coordinator(wire, "g", time.monotonic() + START_MAX_S)
        for number in range(GROUPS):
            body = commit_body(f"group-{number}", {name: range(PARTITIONS) for name in names}, 1)
            _commit(wire, body, time.monotonic() + START_MAX_S)
    server.kill()
    server.spawn()
    slowest = 0.0
    with Wire.connect(server.port, time.monotonic() + START_MAX_S) as wire:
        wire.ask(API_VERSIONS, 0, b"")
        started = time.monotonic()
        while _listed(wire) != GROUPS:
            asked = time.monotonic()
            if asked - started > START_MAX_S:
                raise RequestFailed("not loaded")
            wire.ask(API_VERSIONS, 0, b"")
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.001)
        return {"load_s": time.monotonic() - started, "slowest_ms": slowest * 1_000}


def _load(bench: Bench) -> Samples:
    def one_run(name: str) -> Sample:
        with bench.fresh(name) as server:
            server.prepare()
            return load_once(server)

    return bench.in_turns(bench.alone(*OURS, "kafka"), one_run)


SCENARIOS = (
    Scenario(
        "offset-commits",
        "offset commits, 64 connections",
        "raw sockets, 64 connections with a group each, one commit of one partition in flight on each; Headpond fsyncs "
        "before each answer, 'kafka' answers from the page cache",
        (REQUESTS_PER_S, CPU_PER_REQUEST, P50, P99),
        (Bar("at least 5,000 durable commits a second", REQUESTS_PER_S, absolute=5_000),),
        _commits,
    ),
    Scenario(
        "group-load",
        "a coordinator loads 1,000,000 offsets",
        "1,000 groups x 10 topics x 100 partitions, kill -9, start; from the first answer until all groups are listed, "
        "with another request every millisecond",
        (LOAD, SLOWEST),
        (Bar("at most 8 s", LOAD, absolute=8.0), Bar("the loop is never held for 50 ms", SLOWEST, absolute=50.0)),
        _load,
    ),
)
