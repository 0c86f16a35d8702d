"""The guide to Spark does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import test_guides
from docs.guide import steps_of
from docs.test_guides import GUIDES, Terminal

PROGRAM_S_MAX = 240
"""Each program starts a Spark of its own."""


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    for module in ("pyspark", "pyarrow", "numba", "pandas"):
        pytest.importorskip(module)
    monkeypatch.setattr(test_guides, "COMMAND_S_MAX", PROGRAM_S_MAX)
    opened = Terminal(tmp_path)
    yield opened
    opened.stop_broker()


def test_the_guide_to_spark_does_what_it_says(terminal: Terminal) -> None:
    for step in steps_of(GUIDES / "spark.md"):
        terminal.do(step)
