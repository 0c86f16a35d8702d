"""The load generators: compiled on the fly into bench/build, run with a time limit, their one JSON object returned.

librdkafka comes from the confluent-kafka wheel of this environment (see rdk.h). Java's producer is run by Kafka's own
tool for measuring it. What lacks a C compiler, or Java, can't be run and `available` says why.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BUILD = HERE / "build"
PROGRAMS = ("loadgen", "rdkload", "rdkmock")
ORACLE = HERE.parent / "tools" / "kafka_oracle"  # starts Kafka and its tools
JAVA_PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
# About what Java's producer reaches beside a broker on two cores; its tool is given a number of records, not a time.
JAVA_RECORDS_PER_S = 300_000
# Beyond a program's own duration: connecting, the last answers, a consumer's pass over data of unknown size.
GRACE_S = 120.0

# One client against one broker on a small machine: a bounded queue keeps the client's own memory warm (an unbounded one
# spends more on page faults than the broker on the records), and no retry may hide a failure.
PRODUCER = {
    "enable.idempotence": "false",
    "queue.buffering.max.messages": "500000",
    "queue.buffering.max.kbytes": "65536",
    "batch.num.messages": "100000",
    "message.timeout.ms": "60000",
}


class LoadFailed(Exception):
    """A generator could not run, or requests were answered with errors: no figure."""


class Tools:
    def __init__(self) -> None:
        self._left_out: dict[str, str] = {}
        self.build()

    def build(self) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        for program in PROGRAMS:
            if compiler is None:
                self._left_out[program] = "no C compiler (cc)"
            elif problem := self._compile(compiler, program):
                self._left_out[program] = problem
        if shutil.which("java") is None:
            self._left_out[JAVA_PRODUCER] = "no java"

    def available(self, program: str) -> str | None:
        """None when the program can be run, else the reason why not."""
        return self._left_out.get(program)

    def path(self, program: str) -> Path:
        if reason := self._left_out.get(program):
            raise LoadFailed(f"{program}: {reason}")
        return BUILD / program

    def loadgen(self, port: int, topic: str, seconds: float, **options: int) -> dict[str, Any]:
        """One-record requests, or fetches; options are loadgen's own, with underscores."""
        result = self._run(self.loadgen_command(port, topic, seconds, **options), seconds)
        if result["errors"] or result["unanswered"] or not result["requests"]:
            raise LoadFailed(f"loadgen: {result}")
        return result

    def loadgen_command(self, port: int, topic: str, seconds: float, **options: int) -> list[str]:
        command = [str(self.path("loadgen")), "--port", str(port), "--topic", topic, "--seconds", str(seconds)]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        return command

    def produce(self, bootstrap: str, topic: str, seconds: float, **options: Any) -> dict[str, Any]:
        return self._bulk(self.produce_command(bootstrap, topic, seconds, **options), seconds)

    def produce_command(
        self,
        bootstrap: str,
        topic: str,
        seconds: float,
        *,
        partitions: int = 4,
        record_bytes: int = 1000,
        total_bytes: int = 0,
        transaction_s: float = 0,
        client: dict[str, str],
    ) -> list[str]:
        command = [str(self.path("rdkload")), "produce", "--bootstrap", bootstrap, "--topic", topic]
        command += ["--seconds", str(seconds), "--partitions", str(partitions), "--record-bytes", str(record_bytes)]
        command += ["--bytes", str(total_bytes), "--transaction-seconds", str(transaction_s)]
        for name, value in (PRODUCER | client).items():
            command += ["--set", f"{name}={value}"]
        return command

    def java_produce(
        self,
        bootstrap: str,
        topic: str,
        seconds: float,
        *,
        record_bytes: int,
        transaction_s: float,
        client: dict[str, str],
    ) -> dict[str, Any]:
        """As many records again are sent first and not timed: every run is a JVM that has compiled nothing yet."""
        timed = round(seconds * JAVA_RECORDS_PER_S)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as payload:
            payload.write("x" * record_bytes)
            payload.flush()
            command = [str(ORACLE), "tool", JAVA_PRODUCER, "--bootstrap-server", bootstrap, "--topic", topic]
            command += ["--num-records", str(2 * timed), "--warmup-records", str(timed), "--payload-file", payload.name]
            command += ["--throughput", "-1", "--command-property", *(f"{k}={v}" for k, v in client.items())]
            if transaction_s:
                command += ["--transaction-duration-ms", str(round(transaction_s * 1000))]
            said = self._output(command, seconds)
        sent = re.search(r"^(\d+) records sent.* 50th,", said, re.MULTILINE)  # the summary: its progress has no such
        steady = re.search(r"^\d+ steady state records sent, ([\d.]+) records/sec", said, re.MULTILINE)
        if not sent or not steady or int(sent[1]) != 2 * timed:
            raise LoadFailed(f"{JAVA_PRODUCER}: {said[-500:]}")
        return {"mb_per_s": float(steady[1]) * record_bytes / 1e6, "bytes": 2 * timed * record_bytes}

    def consume(self, bootstrap: str, topic: str, *, passes: int, partitions: int = 4) -> dict[str, Any]:
        command = [str(self.path("rdkload")), "consume", "--bootstrap", bootstrap, "--topic", topic]
        return self._bulk([*command, "--passes", str(passes), "--partitions", str(partitions)], 60)

    def _bulk(self, command: list[str], seconds: float) -> dict[str, Any]:
        result = self._run(command, seconds)
        if result["errors"] or not result["records"]:
            raise LoadFailed(f"rdkload: {result}")
        return result

    def _run(self, command: list[str], seconds: float) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self._output(command, seconds))
        return parsed

    def _output(self, command: list[str], seconds: float) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + GRACE_S, check=False)
        except subprocess.TimeoutExpired as late:
            raise LoadFailed(f"{Path(command[0]).name} did not end within {late.timeout:.0f} s") from None
        if done.returncode or not done.stdout.strip():
            raise LoadFailed(f"{Path(command[0]).name}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def _compile(self, compiler: str, program: str) -> str | None:
        source, target = HERE / f"{program}.c", BUILD / program
        command = [compiler, "-O2", "-std=gnu11", "-o", str(target), str(source)]
        if program != "loadgen":
            library = librdkafka()
            if library is None:
                return "no librdkafka: confluent-kafka is not installed in this environment"
            command += [str(library), f"-Wl,-rpath,{library.parent}"]
        BUILD.mkdir(exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return None if done.returncode == 0 else f"does not compile: {done.stderr.strip()[-500:]}"


def librdkafka() -> Path | None:
    """The shared library inside the confluent-kafka wheel."""
    spec = find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        return None
    libraries = Path(spec.origin).parent.parent / "confluent_kafka.libs"
    return next(iter(sorted(libraries.glob("librdkafka-*.so*"))), None)
