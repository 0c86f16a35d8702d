"""Brokers under what the systemd unit forbids, without systemd: see ``confined.py``, which runs them."""

from __future__ import annotations

import configparser
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from support import confined
from support.broker import BrokerProcess, StartFailed
from support.waiting import DEADLINE_S

UNIT = Path(__file__).parents[2] / "deploy" / "headpond.service"

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser


def analyze(*arguments: str | Path) -> str:
    line = ["systemd-analyze", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def filter_of(service: configparser.SectionProxy) -> list[str]:
    """The system calls of the unit's filter: its groups as this systemd knows them."""
    names: set[str] = set()
    groups = ["@default", *service["SystemCallFilter"].split()]
    while groups:
        group = groups.pop()
        for word in analyze("syscall-filter", "--no-pager", group).splitlines()[1:]:
            name = word.strip()
            if name.startswith("@"):
                groups.append(name)
            elif name and not name.startswith("#"):
                names.add(name)
    return sorted(names)


class Confined(BrokerProcess):
    """A broker under the unit's filters."""

    def __init__(self, folder: Path, *, lethal: Iterable[str] = (), **options: Any) -> None:
        """``lethal``: system calls that end the process."""
        super().__init__(folder, **options)
        service = unit()["Service"]
        assert service["MemoryDenyWriteExecute"] == "yes" and service["SystemCallErrorNumber"] == "EPERM"
        allowed = folder / "allowed"
        allowed.write_text("\n".join([*filter_of(service), *(f"!{name}" for name in lethal)]))
        names = service["RestrictAddressFamilies"].split()
        families = ",".join(str(int(getattr(socket, name))) for name in names)
        self.wrapper = [sys.executable, confined.__file__, str(allowed), families]

    def started(self) -> Confined:
        try:
            self.start()
        except StartFailed:
            if self.wait_exit() == confined.CANT:
                pytest.skip("this kernel, or its libraries, can't confine a process so")
            raise
        assert "Seccomp:\t2\n" in Path(f"/proc/{self.pid}/status").read_text(), "it runs without the filter"
        return self
