"""Reads a guide as a script: its commands with the output they promise, its programs, in order.

    ```console              ``$`` begins a command; what follows is its output (stdout and stderr), ``...`` stands for
                            anything
    ```console stopped      the same, after the guide's broker was stopped
    ```python               a program; it passes if it ends with 0

``penstock serve`` becomes the guide's broker, on a free port that takes the place of 127.0.0.1:9092 in everything that
follows; it ends when the next one starts, or with the guide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(console(?: stopped)?|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    kind: str  # "command" or "program"
    text: str
    output: str = ""
    stops_broker: bool = False

    @property
    def starts_broker(self) -> bool:
        return self.kind == "command" and self.text.startswith("penstock serve") and "listening on" in self.output


def steps_of(guide: Path) -> list[Step]:
    steps: list[Step] = []
    for kind, block in FENCE.findall(guide.read_text()):
        if kind == "python":
            steps.append(Step("program", block))
            continue
        stops_broker = kind.endswith("stopped")
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            steps.append(Step("command", command, output, stops_broker))
            stops_broker = False
    return steps


def matches(promised: str, seen: str) -> bool:
    """Line by line, where ``...`` inside a line stands for anything and a line of nothing else for any lines."""
    pattern = "".join(
        "(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.split("..."))) + "\n"
        for line in promised.rstrip("\n").split("\n")
    )
    return re.fullmatch(pattern, seen.rstrip() + "\n" if seen.strip() else "\n") is not None
