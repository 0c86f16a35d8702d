"""Writes the table of metrics in docs/operations-metrics.md: run it after a metric has changed; a test compares.

The rest of the page is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headpond.telemetry import catalogue
from headpond.telemetry.families import Family

PAGE = Path(__file__).resolve().parent.parent / "docs" / "operations-metrics.md"
BEGIN = "<!-- begin: made by tools/metrics_page.py -->\n"
END = "<!-- end -->"


def page() -> str:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + _table(("metric", "kind", "labels", ""), map(_row, catalogue.ALL)) + END + after


def _row(family: Family) -> tuple[str, ...]:
    return f"`{family.name}`", family.kind, ", ".join(f"`{label}`" for label in family.labels), family.help


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
