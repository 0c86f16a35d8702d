"""The registry as text: Prometheus' format 0.0.4 and OpenMetrics 1.0.0, in slices.

A slice is a few hundred lines at most, so that whoever sends it can let the loop turn in between; a histogram's lines
are never torn apart. A source that fails loses its family's remaining lines and nothing else: a scrape must tell what
it can, above all when something is wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

from headpond.telemetry.families import Family, Registry
from headpond.telemetry.metrics import Counter, Histogram, Labels

log = logging.getLogger("headpond.telemetry")

LINES_PER_SLICE = 250
"""A line takes 1-2 us: the loop is held for well below a millisecond."""


class Format(NamedTuple):
    name: str
    content_type: str
    is_open_metrics: bool


TEXT = Format("text", "text/plain; version=0.0.4; charset=utf-8", False)
OPEN_METRICS = Format("openmetrics", "application/openmetrics-text; version=1.0.0; charset=utf-8", True)


def exposition(registry: Registry, format: Format, failures: Counter) -> Iterator[bytes]:
    """Slices of the whole text, some of them empty. ``failures`` counts sources that raised."""
    lines: list[str] = []
    for family, source in registry.families():
        lines.extend(_head(family, format))
        try:
            for point in source():
                if point is not None:
                    labels, value = point
                    braces = _braces(family.labels, labels)
                    if isinstance(value, Histogram):
                        lines.extend(_histogram_lines(family.name, braces, value))
                    else:
                        lines.append(f"{family.name}{braces} {number(value)}")
                if point is None or len(lines) >= LINES_PER_SLICE:
                    yield _join(lines)
                    lines = []
        except Exception:
            failures.value += 1
            log.exception("the metric %s could not be read", family.name)
    if format.is_open_metrics:
        lines.append("# EOF")
    if lines:
        yield _join(lines)


def number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))  # True is 1
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _head(family: Family, format: Format) -> list[str]:
    if not format.is_open_metrics:
        kind = "gauge" if family.kind == "info" else family.kind
        help_text = family.help.replace("\\", "\\\\")
        return [f"# HELP {family.name} {help_text}", f"# TYPE {family.name} {kind}"]
    lines = [f"# TYPE {family.base} {family.kind}"]
    if family.unit:
        lines.append(f"# UNIT {family.base} {family.unit}")
    return [*lines, f"# HELP {family.base} {_escaped(family.help)}"]


def _histogram_lines(name: str, braces: str, histogram: Histogram) -> list[str]:
    opening = f"{name}_bucket{{" + (f"{braces[1:-1]}," if braces else "")
    lines = []
    total = 0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
        total += count
        lines.append(f'{opening}le="{number(bound)}"}} {total}')
    total += histogram.counts[-1]
    lines.append(f'{opening}le="+Inf"}} {total}')
    lines.append(f"{name}_sum{braces} {number(histogram.sum)}")
    lines.append(f"{name}_count{braces} {total}")
    return lines


def _braces(names: tuple[str, ...], values: Labels) -> str:
    if not names:
        return ""
    if len(names) == 2:  # the many partitions have these: a straight line for them
        (first, second), (one, other) = names, values
        return f'{{{first}="{_escaped(one)}",{second}="{_escaped(other)}"}}'
    pairs = ",".join([f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)])
    return f"{{{pairs}}}"


def _escaped(text: str) -> str:
    if not ("\\" in text or '"' in text or "\n" in text):
        return text
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _join(lines: list[str]) -> bytes:
    if not lines:
        return b""
    lines.append("")
    return "\n".join(lines).encode("utf-8", "replace")
