"""Starts, crashes and memory at rest: each on a server of its own with a new folder. And how long a command takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

from ..harness import Bench
from ..measure import RSS, Bar, Metric, Sample, Samples, Scenario
from ..servers import OURS, RECYCLED, START_MAX_S, Server
from ..wire import RequestFailed, Wire
from .throughput import BIG_BATCHES

FIRST_ACK = Metric("first_ack_s", "s to the first ack", "lower", 3)
RESTART = Metric("clean_restart_s", "s after a clean stop", "lower", 3)
RECOVERY = Metric("recovery_s", "s to the first ack", "lower", 3)
COMMAND = Metric("command_s", "s from exec to exit", "lower", 3)
BROKER_IN_TEST = Metric("started_s", "s until it can be used", "lower", 3)
RECOVERY_ALL = Metric("recovery_all_s", "s to an ack from every partition", "lower", 3)
LIGHT_CONNECTIONS = 1000
MANY_RUNS = 15


def first_ack_s(server: Server, topic: str, *, create: bool, partitions: int = 1) -> list[float]:
    """Starts the process and returns seconds from exec until partitions 0, 1, ... acknowledged an acks=all record."""
    started = time.monotonic()
    deadline = started + START_MAX_S
    server.spawn()
    acked: list[float] = []
    while not acked:
        if server.process is None or server.process.poll() is not None:
            raise RequestFailed(f"{server.title} ended at start: {server.last_words()}")
        try:
            with Wire.connect(server.port, min(deadline, time.monotonic() + 1)) as wire:
                if create:
                    wire.create_topic(topic, partitions, RECYCLED)
                for partition in range(partitions):
                    wire.produce_until_acked(topic, partition, deadline)
                    acked.append(time.monotonic() - started)
        except (OSError, RequestFailed):
            acked.clear()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002)
    return acked


def _start(bench: Bench) -> Samples:
    def one_run(name: str) -> Sample:
        with bench.fresh(name) as server:
            server.prepare()
            first = first_ack_s(server, "first", create=True)[0]
            server.stop()
            return {"first_ack_s": first, "clean_restart_s": first_ack_s(server, "first", create=False)[0]}

    return bench.in_turns(bench.alone(*OURS, "kafka"), one_run)


Load = Callable[[Bench, Server], list[str]]  # the command of a client that loads the server


def _crash(load: Load) -> Callable[[Bench], Samples]:
    def run(bench: Bench) -> Samples:
        # Each run loads for a minute. The bar is Headpond's alone: Kafka, for scale, gets one.
        def one_run(name: str) -> Sample:
            return crash_once(bench, name, load)

        ours = bench.some_runs(bench.alone(*OURS), bench.plan.repetitions, one_run)
        return {**ours, **bench.some_runs(bench.alone("kafka"), 1, one_run)}

    return run


def crash_once(bench: Bench, name: str, load: Load) -> Sample:
    """The server is killed while the load is still running, and started again on what it left behind."""
    with bench.fresh(name) as server:
        server.start()
        server.create_topic("crash", 4, RECYCLED)
        client = subprocess.Popen(load(bench, server), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(bench.plan.crash_load_s)
            if client.poll() is not None:
                raise RequestFailed("the load ended before the crash")
            server.kill()
        finally:
            client.kill()
            client.wait()
        acked = first_ack_s(server, "crash", create=False, partitions=4)
        return {"recovery_s": acked[0], "recovery_all_s": acked[-1]}


def _batches(bench: Bench, server: Server) -> list[str]:
    return bench.tools.produce_command(server.bootstrap, "crash", bench.plan.crash_load_s + 60, client=BIG_BATCHES)


def _single_records(bench: Bench, server: Server) -> list[str]:
    seconds = bench.plan.crash_load_s + 60
    return bench.tools.loadgen_command(server.port, "crash", seconds, partitions=4, connections=16, depth=4, acks=1)


def _idle_memory(bench: Bench) -> Samples:
    def one_run(name: str) -> Sample:
        with bench.fresh(name) as server:
            server.start()
            time.sleep(bench.plan.idle_s)
            return {"rss_mb": server.rss_mb()}

    return bench.some_runs(bench.alone(*OURS, "kafka"), bench.plan.repetitions, one_run)


def _light_connections(bench: Bench) -> Samples:
    def one_run(name: str) -> Sample:
        with bench.fresh(name) as server:
            server.start()
            server.create_topic("light", 4, RECYCLED)
            seconds = bench.plan.idle_s + 5
            options = {"partitions": 4, "connections": LIGHT_CONNECTIONS, "interval_ms": 1000, "acks": 1}
            command = bench.tools.loadgen_command(server.port, "light", seconds, **options)
            client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            peak_mb = 0.0
            try:
                while client.poll() is None:
                    peak_mb = max(peak_mb, server.rss_mb())
                    time.sleep(0.25)
            finally:
                client.kill()
                said, _ = client.communicate()
            if client.returncode != 0:
                raise RequestFailed("the light clients failed: loadgen ended with an error")
            done = json.loads(said)
            if done["errors"] or done["unanswered"] or done["requests"] < LIGHT_CONNECTIONS:
                raise RequestFailed(f"the light clients failed: {done}")
            return {"rss_mb": peak_mb}

    return bench.some_runs(bench.alone(*OURS, "kafka"), bench.plan.repetitions, one_run)


def _command(bench: Bench) -> Samples:
    names = bench.servers("headpond")
    if not names:
        return {}
    server = bench.server("headpond")
    command = [sys.executable, "-m", "headpond", "topics", "list", "--bootstrap-server", server.bootstrap]
    # As for the server: an installed package has its byte code.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def one_run(_: str) -> Sample:
        started = time.monotonic()
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RequestFailed("headpond topics list failed")
        return {"command_s": time.monotonic() - started}

    bench.attempt("warm-up", lambda: one_run("headpond"))
    return bench.some_runs(names, MANY_RUNS, one_run)


def _broker_in_test(bench: Bench) -> Samples:
    from headpond.testing import Broker

    def one_run(_: str) -> Sample:
        started = time.monotonic()
        with Broker():
            return {"started_s": time.monotonic() - started}

    names = bench.alone("headpond")
    return bench.some_runs(names, MANY_RUNS, one_run)


SCENARIOS = (
    Scenario(
        "command-start",
        "a command, from exec to exit",
        "`headpond topics list` with a broker that runs already",
        (COMMAND,),
        (Bar("at most 0.25 s", COMMAND, absolute=0.25),),
        _command,
    ),
    Scenario(
        "broker-in-test",
        "a fresh broker for a test",
        "`headpond.testing.Broker`, which the pytest fixtures use, until a client can be given its address",
        (BROKER_IN_TEST,),
        (Bar("at most 0.3 s", BROKER_IN_TEST, absolute=0.3),),
        _broker_in_test,
    ),
    Scenario(
        "start",
        "exec to the first acknowledged produce",
        "new data folder (Kafka's is formatted beforehand), topic created by the first client, one acks=all record; "
        "then the same after a clean stop",
        (FIRST_ACK, RESTART),
        (Bar("at most 0.3 s", FIRST_ACK, absolute=0.3),),
        _start,
    ),
    Scenario(
        "crash-batches",
        "kill -9 under 1 MB batches, restart to the next acknowledged produce",
        "librdkafka producer, 4 partitions, until the kill; one acks=all record per partition after the restart",
        (RECOVERY, RECOVERY_ALL),
        (Bar("at most 0.5 s", RECOVERY, absolute=0.5),),
        _crash(_batches),
        ("rdkload",),
    ),
    Scenario(
        "crash-single-records",
        "kill -9 under one-record requests, restart to the next acknowledged produce",
        "raw sockets, 16 connections 4 deep, 4 partitions, until the kill; then one acks=all record per partition",
        (RECOVERY, RECOVERY_ALL),
        (Bar("at most 0.5 s", RECOVERY, absolute=0.5),),
        _crash(_single_records),
        ("loadgen",),
    ),
    Scenario(
        "idle-memory",
        "idle memory",
        "resident memory of a server that was just started and has nothing to do",
        (RSS,),
        (Bar("at most 40 MB", RSS, absolute=40.0),),
        _idle_memory,
    ),
    Scenario(
        "light-connections",
        "memory with 1,000 light connections",
        "1,000 connections, each sends one 100-byte record per second; the highest resident memory seen",
        (RSS,),
        (Bar("at most 100 MB", RSS, absolute=100.0),),
        _light_connections,
        ("loadgen",),
    ),
)
