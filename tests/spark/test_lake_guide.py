"""The guide to lakes, snapshots and audits does what it says."""

from __future__ import annotations

from docs.guide import steps_of
from docs.test_guides import GUIDES, Terminal
from spark.test_spark_guide import terminal

__all__ = ["terminal"]  # the fixture


def test_the_guide_to_lakes_does_what_it_says(terminal: Terminal) -> None:
    for step in steps_of(GUIDES / "lake.md"):
        terminal.do(step)
