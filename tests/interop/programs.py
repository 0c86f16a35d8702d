"""Programs of other languages that speak to a broker and print JSON lines.

What they need is downloaded once, into a folder outside the tree (``HEADPOND_INTEROP_CACHE``). Downloads are made only
where ``HEADPOND_TEST_DOWNLOADS`` is set, as ``make interop`` does.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CLASSPATH = os.environ.get("HEADPOND_TEST_KAFKA_CLASSPATH", "")
MAY_DOWNLOAD = bool(os.environ.get("HEADPOND_TEST_DOWNLOADS"))
CACHE = Path(os.environ.get("HEADPOND_INTEROP_CACHE") or Path.home() / ".cache" / "headpond-interop")
RUN_S = 180.0
DOWNLOAD_S = 600.0

needs_kafka = pytest.mark.skipif(
    not CLASSPATH or not shutil.which("java"),
    reason="needs java 17 and Kafka's jars (HEADPOND_TEST_KAFKA_CLASSPATH); `make interop` brings them",
)


def java(program: str, *arguments: str) -> list[dict[str, Any]]:
    """Run ``java/PROGRAM.java`` with Kafka's jars; what it printed."""
    command = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-XX:TieredStopAtLevel=1", "-cp", CLASSPATH]
    return run([*command, str(HERE / "java" / f"{program}.java"), *arguments])


def kafka_tool(name: str, *arguments: str) -> str:
    """Run one of Kafka's own tools; both streams. A failure fails the test."""
    command = [
        "java",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        CLASSPATH,
        name,
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def run(command: list[str], cwd: Path | None = None) -> list[dict[str, Any]]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False, cwd=cwd)
    assert done.returncode == 0, (
        f"{command[-1]} ended with {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def require(tool: str, version: str = "", *, downloads: bool = True) -> None:
    """Skip where the language is missing, or where nothing may be downloaded."""
    if not shutil.which(tool):
        pytest.skip(f"needs {tool}{version}")
    if downloads and not MAY_DOWNLOAD:
        pytest.skip("needs downloads (HEADPOND_TEST_DOWNLOADS); `make interop` allows them")


def prepared(name: str, files: list[Path], *steps: list[str]) -> Path:
    """A folder of the cache with copies of ``files`` in which ``steps`` were run; made anew when a file changes."""
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    if not (folder / ".complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in files:
            shutil.copy(file, folder)
        for step in steps:
            done = subprocess.run(step, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False)
            assert done.returncode == 0, f"{step}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        (folder / ".complete").touch()
    return folder


Program = Callable[[str, str], list[dict[str, Any]]]
"""Given the bootstrap address and a prefix for its topics, the lines that it printed."""

CLIENTS = ("java", "franz-go", "kafka-go", "platformatic", "kafkajs")
CLIENTS_OF_GROUPS = (*CLIENTS, "sarama")
JAVA_PROGRAMS = {"records": ("Client",), "groups": ("Groups", "Transactions")}
GO_ARGUMENTS: dict[str, tuple[list[str], ...]] = {"records": ([],), "groups": (["groups"], ["transactions"])}


def client_program(client: str, about: str = "records") -> Program:
    """What the client's programs say ``about`` records, or groups and transactions; skips where they can't be run."""
    if client == "java":
        return _java_program(about)
    if client == "franz-go":
        return _go_program("go", client, *GO_ARGUMENTS[about])
    if client == "kafka-go":
        return _go_program("kafka-go", client, [] if about == "records" else ["groups"])
    if client == "sarama":
        return _go_program("sarama", client, [])
    return _javascript_program(client, about)


def _java_program(about: str) -> Program:
    if not CLASSPATH:
        pytest.skip("needs Kafka's jars (HEADPOND_TEST_KAFKA_CLASSPATH); `make interop` brings them")
    require("java", " 17 or newer", downloads=False)
    programs = JAVA_PROGRAMS[about]
    return lambda bootstrap, prefix: [line for each in programs for line in java(each, bootstrap, prefix)]


def _go_program(source: str, name: str, *variants: list[str]) -> Program:
    require("go")
    folder = prepared(name, sorted((HERE / source).iterdir()), ["go", "build", "-o", "client", "."])
    command = str(folder / "client")
    return lambda bootstrap, prefix: [line for each in variants for line in run([command, bootstrap, prefix, *each])]


def _javascript_program(client: str, about: str) -> Program:
    require("npm")
    require("node", " 20.19 or newer")
    folder = prepared("js", sorted((HERE / "js").iterdir()), ["npm", "ci", "--no-audit", "--no-fund"])
    file = folder / (f"{client}.mjs" if about == "records" else f"{client}-{about}.mjs")
    return lambda bootstrap, prefix: run(["node", str(file), bootstrap, prefix])
