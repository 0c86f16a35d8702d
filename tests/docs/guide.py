"""Reads a guide as a script: its commands with the output they promise, its programs, in order.

    ```console              ``$`` begins a command; what follows is its output (stdout and stderr), ``...`` stands for
                            anything
    ```console stopped      the same, after the guide's broker was stopped
    ```python               a program; it passes if it ends with 0
    ```python pytest        a file of tests
    ```pycon                what somebody types into Python, with what it answers

A command ends with 0 unless what it says begins with ``headpond:``, as its complaints do.

``headpond serve`` becomes the guide's broker, on a free port that takes the place of 127.0.0.1:9092 in everything that
follows; it ends when the next one starts, or with the guide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(console(?: stopped)?|python(?: pytest)?|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {"python": "program", "python pytest": "tests", "pycon": "dialogue"}


@dataclass(frozen=True)
class Step:
    kind: str  # "command", "program", "tests" or "dialogue"
    text: str
    output: str = ""
    stops_broker: bool = False

    @property
    def is_refused(self) -> bool:
        return self.output.startswith("headpond:")

    @property
    def starts_broker(self) -> bool:
        return self.kind == "command" and self.text.startswith("headpond serve") and "listening on" in self.output


def steps_of(guide: Path) -> list[Step]:
    steps: list[Step] = []
    for kind, block in FENCE.findall(guide.read_text()):
        if kind in PROGRAMS:
            steps.append(Step(PROGRAMS[kind], block))
            continue
        stops_broker = kind.endswith("stopped")
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            steps.append(Step("command", command, output, stops_broker))
            stops_broker = False
    return steps


def commands_that_nobody_runs(guide: Path) -> list[str]:
    """In blocks of other kinds."""
    found: list[str] = []
    kind: str | None = None  # outside of blocks
    for line in guide.read_text().splitlines():
        text = line.lstrip()
        if text.startswith("```"):
            kind = text.removeprefix("```") if kind is None else None
        elif kind is not None and text.startswith("$ ") and not (kind.startswith("console") and line == text):
            found.append(line)
    return found


def matches(promised: str, seen: str) -> bool:
    """Line by line, where ``...`` inside a line stands for anything and a line of nothing else for any lines."""
    pattern = "".join(
        "(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.split("..."))) + "\n"
        for line in promised.rstrip("\n").split("\n")
    )
    return re.fullmatch(pattern, seen.rstrip() + "\n" if seen.strip() else "\n") is not None
