"""Counters, gauges and histograms: plain objects of the loop's thread, without locks.

Whoever counts does ``counter.value += 1`` or ``histogram.observe(seconds)``; nothing else happens until a scrape asks
for ``points()``. What the broker knows anyway (log sizes, connections) is not counted at all: a source reads it when it
is asked. A crash forgets everything; counters begin at 0, which is what scrapers expect of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

SERIES_MAX = 1_000
"""Label combinations of one family; what comes beyond it is counted together as "other". A scraper keeps every series
that it has ever seen, so that labels which grow with the clients' imagination would fill its memory."""
OTHER = "other"

Labels = tuple[str, ...]
Point = tuple[Labels, "float | Histogram"]
"""The values of a family's labels, in their order, and what is there now."""
Source = Callable[[], Iterable[Point | None]]
"""Asked at each scrape. None among the points shows nothing and lets the loop turn: for one who walks far."""

SECONDS = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0
)  # fmt: skip
"""Upper bounds for durations: from a request answered out of memory to a disk that hangs."""
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0)
"""Upper bounds for how many things were done at once."""


class Counter:
    """Only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def points(self) -> Iterator[Point]:
        yield (), self.value


class Gauge(Counter):
    """Goes up and down; set ``value``."""

    __slots__ = ()


class Histogram:
    """How often a value fell under which bound; ``counts`` has one place more than ``bounds``, for what is above."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, weight: int = 1) -> None:
        """``weight``: it stands for so many, of which one was looked at."""
        self.counts[bisect_left(self.bounds, value)] += weight
        self.sum += value * weight

    @property
    def count(self) -> int:
        return sum(self.counts)

    def points(self) -> Iterator[Point]:
        yield (), self


M = TypeVar("M", Counter, Gauge, Histogram)


class Labelled(Generic[M]):
    """One metric for each combination of label values, made when it is first asked for, ``series_max`` at most."""

    __slots__ = ("_labels_count", "_make", "_series", "_series_max")

    def __init__(self, make: Callable[[], M], *, labels_count: int = 1, series_max: int = SERIES_MAX) -> None:
        self._make: Callable[[], M] = make
        self._labels_count = labels_count
        self._series_max = series_max
        self._series: dict[Labels, M] = {}

    def at(self, *labels: str) -> M:
        """The metric of these labels; keep it where it is used often."""
        found = self._series.get(labels)
        if found is None:
            if len(labels) != self._labels_count:
                raise ValueError(f"{len(labels)} labels where {self._labels_count} are needed")
            if len(self._series) >= self._series_max:
                labels = (OTHER,) * self._labels_count
                found = self._series.get(labels)
            if found is None:
                found = self._series[labels] = self._make()
        return found

    def points(self) -> Iterator[Point]:
        for labels, metric in list(self._series.items()):
            for _, value in metric.points():
                yield labels, value
