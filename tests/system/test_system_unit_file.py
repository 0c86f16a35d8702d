"""The systemd unit: well-formed, hardened, and a broker that works under what it forbids."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support import confined
from support.batches import Rec, build
from support.confinement import UNIT, Confined, analyze, needs_systemd, unit
from support.verbs import append, create_topic, stored
from support.waiting import DEADLINE_S, eventually
from support.wire import Wire

COMMAND = "/opt/headpond/bin/headpond"
EXPOSURE_MAX = 2.0
"""Of ten, as `systemd-analyze security` counts; a service without any of this has 9.6."""


@pytest.fixture
def installed_unit(tmp_path: Path) -> Path:
    """With a command that is on this machine: the verifier looks for it."""
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text().replace(COMMAND, "/bin/true"))
    return path


@needs_systemd
def test_systemd_finds_nothing_wrong_with_it(installed_unit: Path) -> None:
    assert analyze("verify", "--man=no", "--recursive-errors=no", installed_unit).strip() == ""


@needs_systemd
def test_little_is_left_that_it_could_do_to_the_machine(installed_unit: Path) -> None:
    said = analyze("security", "--offline=true", "--no-pager", installed_unit)
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert level is not None and float(level[1]) <= EXPOSURE_MAX, said


def test_it_waits_for_ready_and_starts_again_after_failures_but_not_after_wrong_settings() -> None:
    service = unit()["Service"]
    assert service["Type"] == "notify" and service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "2"
    assert service["TimeoutStartSec"] == "infinity", "a recovery may take as long as it takes"
    assert service["KillMode"] == "mixed", "a sync process that gets SIGTERM in the middle of a sync ends the broker"
    assert service["ExecStart"].split() == [COMMAND, "serve", "--data-dir", f"/var/lib/{service['StateDirectory']}"]


@needs_systemd
def test_a_broker_under_its_filters_serves_syncs_compacts_and_stops(tmp_path: Path) -> None:
    settings = {"log.cleaner.backoff.ms": 100, "headpond.metrics.listen": "127.0.0.1:0"}
    broker = Confined(tmp_path, settings=settings, env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, contextlib.closing(broker):
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE_S)
        broker.started()
        assert manager.recv(1024).startswith(b"READY=1")
        with Wire(broker.bootstrap_servers) as wire:
            compacted = create_topic(wire, "latest", configs={"cleanup.policy": "compact", "segment.bytes": "1048576"})
            for _ in range(6):
                append(wire, compacted, build([Rec(os.urandom(400_000), b"one key")]))
            eventually(lambda: len(stored(wire, compacted)) < 6, what="a worker process has compacted the log")
            busy = create_topic(wire, "busy")

            def syncs_elsewhere() -> bool:
                for _ in range(100):
                    append(wire, busy, build([b"x"]))
                return any(b"sync_child" in line for line in command_lines_below(broker.pid))

            eventually(syncs_elsewhere, what="a process of its own syncs")
        broker.restart(kill=True)
        with Wire(broker.bootstrap_servers) as wire:
            assert stored(wire, busy)
        broker.stop()
        assert "Operation not permitted" not in broker.logs() and "WARNING" not in broker.logs(), broker.logs()


def command_lines_below(pid: int) -> list[bytes]:
    """Of its children: each belongs to the thread that started it."""
    children = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    found = []
    for child in itertools.chain(*children):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append(Path(f"/proc/{child}/cmdline").read_bytes())
    return found


@needs_systemd
def test_the_filters_are_real(tmp_path: Path) -> None:
    """Or the test before this one would say nothing."""
    broker = Confined(tmp_path)
    program = (
        "import mmap, os, socket\n"
        "for forbidden in (\n"
        "    lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW), lambda: os.chroot('/'),\n"
        "    lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC),\n"
        "):\n"
        "    try:\n"
        "        forbidden()\n"
        "    except PermissionError:\n"
        "        print('refused')\n"
    )
    line = [*broker.wrapper, sys.executable, "-c", program]
    done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode == confined.CANT:
        pytest.skip("this kernel, or its libraries, can't confine a process so")
    assert done.stdout.split() == ["refused"] * 3, done.stderr
