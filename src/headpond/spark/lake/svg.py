"""Bar charts as SVG text, to stand inside of a web page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH = 720
LABEL_WIDTH = 190
VALUE_WIDTH = 110
BAR_HEIGHT, GAP = 16, 5
BARS_MAX = 200
"""More than this nobody reads: the rest is told as a number."""


def bar_chart(bars: Sequence[tuple[str, int]], *, title: str) -> str:
    """Bars from the left, one under the other; each has its label, its length and its value."""
    shown = bars[:BARS_MAX]
    largest = max((value for _, value in shown), default=0) or 1
    height = len(shown) * (BAR_HEIGHT + GAP) + GAP
    room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    parts = [
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'aria-label="{escape(title, quote=True)}">'
    ]
    for number, (label, value) in enumerate(shown):
        top = GAP + number * (BAR_HEIGHT + GAP)
        length = max(room * value / largest, 1 if value else 0)
        middle = top + BAR_HEIGHT - 4
        parts.append(
            f'<text class="label" x="{LABEL_WIDTH - 8}" y="{middle}" text-anchor="end">{escape(_short(label))}</text>'
            f'<rect x="{LABEL_WIDTH}" y="{top}" width="{length:.1f}" height="{BAR_HEIGHT}" rx="2"/>'
            f'<text x="{LABEL_WIDTH + length + 6:.1f}" y="{middle}">{value:,}</text>'
        )
    parts.append("</svg>")
    if len(bars) > len(shown):
        parts.append(f"<p>and {len(bars) - len(shown):,} more</p>")
    return "".join(parts)


def _short(label: str) -> str:
    return label if len(label) <= 28 else label[:27] + "…"
