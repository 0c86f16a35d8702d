"""The six figures of the project's README, as rows of a table and as a chart; from the entries of RESULTS.json. Pure.

A row needs an entry that was measured beside Apache Kafka, both in the same run. Without one it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

Entry = dict[str, Any]
BEGIN, END = "<!-- begin figures: made by `python -m bench.results` -->", "<!-- end figures -->"
_PLACE = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
NONE_YET = "Not measured beside Apache Kafka yet: `make bench` does."


class Headline(NamedTuple):
    scenario: str
    metric: str
    load: str
    unit: str
    peer: str = "kafka"


HEADLINES = (
    Headline("produce-1k", "mb_per_s", "produce, 1 KB records in 1 MB batches", "MB/s"),
    Headline("consume-1k", "mb_per_s", "consume, 1 KB records", "MB/s"),
    Headline("requests-16-connections", "requests_per_s", "one record per request, 16 connections", "requests/s"),
    Headline(
        "fsync-256-partitions",
        "requests_per_s",
        "the same after an fsync, 64 connections, 256 partitions",
        "requests/s",
        "kafka-fsync",
    ),
    Headline("start", "first_ack_s", "start to the first acknowledged record", "s"),
    Headline("idle-memory", "rss_mb", "memory at rest", "MB"),
)
"""The loads that most users have, not those with the largest ratios."""


class Row(NamedTuple):
    headline: Headline
    ours: dict[str, Any]
    theirs: dict[str, Any]
    entry: Entry

    @property
    def name(self) -> str:
        """A ratio below 1 is good news where it says so."""
        return self.headline.load + (" (lower is better)" if self.ours["better"] == "lower" else "")

    def ratio(self, pick: str) -> float:
        return float(self.ours[pick] / self.theirs[pick])


def rows(entries: Iterable[Entry]) -> list[Row]:
    found = {entry["name"]: entry for entry in entries if entry["beside"] == "kafka"}
    measured = []
    for headline in HEADLINES:
        shown = found.get(headline.scenario, {}).get("figures", {})
        ours, theirs = (shown.get(name, {}).get(headline.metric) for name in ("headpond", headline.peer))
        if ours and theirs:
            measured.append(Row(headline, ours, theirs, found[headline.scenario]))
    return measured


def put_into(readme: str, entries: Iterable[Entry]) -> str:
    """The README with the figures between its two marks."""
    if not _PLACE.search(readme):
        raise ValueError(f"the README has no line {BEGIN}")
    return _PLACE.sub(lambda _: f"{BEGIN}\n{table(rows(entries))}\n{END}", readme)


def table(measured: Sequence[Row]) -> str:
    if not measured:
        return NONE_YET
    lines = ["| load | Headpond | Apache Kafka | ratio |", "|---|---|---|---|"]
    for row in measured:
        cells = (
            row.name,
            f"{_figure(row.ours)} {row.headline.unit}",
            f"{_figure(row.theirs)} {row.headline.unit}",
            f"{row.ratio('best'):.2f}x ({row.ratio('median'):.2f}x)",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", caption(measured)])


def caption(measured: Sequence[Row]) -> str:
    """Where, when and with which versions."""

    def each(text: Any) -> str:
        return " and ".join(dict.fromkeys(text(row.entry["run"]) for row in measured))

    counts = sorted({len(figure["all"]) for row in measured for figure in (row.ours, row.theirs)})
    runs = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    machine = each(
        lambda run: f"{run['machine']['cores']} cores ({run['machine']['cpu']}), {run['machine']['filesystem']}"
    )
    kafka = each(lambda run: (run["versions"] or {}).get("Apache Kafka", "of an unknown version"))
    return (
        f"Best (median) of {runs} interleaved runs, {each(lambda run: run['date'])}; Apache Kafka {kafka}, warmed up "
        f"under the same load; {machine}, shared with the load generator."
    )


def _figure(shown: dict[str, Any]) -> str:
    digits = shown["digits"]
    return f"{shown['best']:,.{digits}f} ({shown['median']:,.{digits}f})"


# --- the chart --------------------------------------------------------------------------------------------------------

WIDTH, ROW, TOP, BAR = 760, 58, 44, 15
LEFT, LONGEST = 20, 520
OURS, THEIRS = "#1f6feb", "#9aa4b2"


def chart(entries: Iterable[Entry]) -> str:
    """A pair of bars for each row; the longer bar of a pair has the full length."""
    measured = rows(entries)
    height = TOP + max(1, len(measured)) * ROW + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Headpond and Apache Kafka">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        _bar(LEFT, 15, 12, OURS) + _text(LEFT + 18, 25, "Headpond", "#24292f"),
        _bar(LEFT + 100, 15, 12, THEIRS) + _text(LEFT + 118, 25, "Apache Kafka", "#24292f"),
    ]
    if not measured:
        parts.append(_text(LEFT, TOP + 25, NONE_YET.replace("`", ""), "#24292f"))
    for number, row in enumerate(measured):
        top = TOP + number * ROW
        better = f"{row.ours['better']} is better"
        parts.append(_text(LEFT, top + 12, f"{row.headline.load} ({row.headline.unit}, {better})", "#24292f"))
        largest = max(row.ours["best"], row.theirs["best"])
        for line, (shown, colour) in enumerate(((row.ours, OURS), (row.theirs, THEIRS))):
            length = max(2.0, LONGEST * shown["best"] / largest)
            y = top + 18 + line * (BAR + 2)
            parts.append(_bar(LEFT, y, length, colour, BAR))
            parts.append(_text(LEFT + length + 6, y + 12, f"{shown['best']:,.{shown['digits']}f}", "#57606a"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(x: float, y: float, width: float, colour: str, height: float = 12) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="2" fill="{colour}"/>'


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:g}" fill="{colour}">{escape(text)}</text>'
