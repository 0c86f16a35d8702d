"""What a metric is called, and the registry that knows where each one's values come from.

Names follow Prometheus' rules, checked when a family is made: base units (``_seconds``, ``_bytes``) in the name,
``_total`` on counters and nowhere else, no name that another family's samples would have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from headpond.telemetry.metrics import Source

Kind = Literal["counter", "gauge", "histogram", "info"]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_UNITS = ("seconds", "bytes")
_NOT_BASE_UNITS = {
    *("ns", "us", "ms", "nanoseconds", "microseconds", "milliseconds", "minutes", "hours", "days"),
    *("bits", "kb", "mb", "gb", "kib", "mib", "gib", "kilobytes", "megabytes", "gigabytes", "percent"),
}
_RESERVED_LABELS = ("le", "quantile", "job", "instance")
_SAMPLE_SUFFIXES = ("_total", "_count", "_sum", "_bucket", "_created", "_info")


class Family(NamedTuple):
    name: str  # as in the text format: a counter's with _total, an info's with _info
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The family's name in OpenMetrics, where the suffix belongs to the sample."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.kind, "")
        return self.name.removesuffix(suffix) if suffix else self.name

    @property
    def unit(self) -> str:
        """``seconds``, ``bytes`` or nothing."""
        last = self.base.rpartition("_")[2]
        return last if last in _UNITS else ""


def complaints(family: Family) -> list[str]:
    """What is wrong with a family's name, labels and help; nothing, if it is fine."""
    name, found = family.name, []
    if not _NAME.fullmatch(name):
        found.append("the name must be lower-case words joined by underscores")
    if family.kind == "counter" and not name.endswith("_total"):
        found.append("a counter's name ends in _total")
    if family.kind == "info" and not name.endswith("_info"):
        found.append("an info's name ends in _info")
    if family.base.endswith(_SAMPLE_SUFFIXES):
        found.append("the name ends like a sample of another kind")
    if wrong := sorted(_NOT_BASE_UNITS.intersection(name.split("_"))):
        found.append(f"{', '.join(wrong)}: use seconds, bytes or a ratio")
    words = family.base.split("_")
    if any(unit in words and words[-1] != unit for unit in _UNITS):
        found.append("the unit is the name's last word, before _total")
    for label in family.labels:
        if not _NAME.fullmatch(label) or label in _RESERVED_LABELS:
            found.append(f"the label {label} is reserved or not a name")
    if not family.help.strip() or "\n" in family.help:
        found.append("the help is one line of text")
    return found


class Registry:
    """Families in the order in which they are shown, each with where its points come from."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[Family, Source]] = {}

    def add(self, family: Family, source: Source) -> None:
        """``source`` is called at each scrape; it may be a generator that walks over many things, and is then run in
        slices with the loop turning in between."""
        wrong = complaints(family)
        if family.base in self._sources:
            wrong.append("another family has that name")
        if wrong:
            raise ValueError(f"metric {family.name}: {'; '.join(wrong)}")
        self._sources[family.base] = family, source

    def families(self) -> Iterator[tuple[Family, Source]]:
        return iter(list(self._sources.values()))
