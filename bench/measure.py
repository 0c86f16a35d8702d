"""What a measurement is: metrics, samples, bars and their verdicts, and interleaved runs over several servers.

Noise on a machine only ever takes away, so the best of several runs is the figure and the median says how steady it is.
A bar holds when the best or the median reaches it. Within 5 % of it counts as reached, and the verdict says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

Sample = dict[str, float]
NEAR = 0.05
HOLDS, NEARLY, MISSED, NOT_MEASURED = "holds", "within 5 %", "missed", "not measured"
REACHED = (HOLDS, NEARLY)

Samples = dict[str, list[Sample]]  # by server (or by variant), in the order of the runs


@dataclass(frozen=True)
class Metric:
    key: str
    unit: str
    better: Literal["higher", "lower"]
    digits: int = 0

    def best(self, values: list[float]) -> float:
        return max(values) if self.better == "higher" else min(values)

    def show(self, value: float) -> str:
        return f"{value:,.{self.digits}f} {self.unit}"


MB_PER_S = Metric("mb_per_s", "MB/s", "higher")
CPU_PER_GB = Metric("cpu_s_per_gb", "CPU-s/GB", "lower", 2)
CLIENT_CPU_PER_GB = Metric("client_cpu_s_per_gb", "client CPU-s/GB", "lower", 2)
REQUESTS_PER_S = Metric("requests_per_s", "req/s", "higher")
CPU_PER_REQUEST = Metric("cpu_us_per_request", "CPU-us/req", "lower", 1)
P50 = Metric("p50_us", "us p50", "lower")
P99 = Metric("p99_us", "us p99", "lower")
RSS = Metric("rss_mb", "MB RSS", "lower")


@dataclass(frozen=True)
class Bar:
    """`subject`'s metric is at least (higher is better) or at most (lower is better) the limit.

    The limit is `absolute`, or factor x the same metric of another server; with several of those, the easiest one.
    """

    text: str
    metric: Metric
    targets: tuple[tuple[str, float], ...] = ()
    absolute: float | None = None
    subject: str = "headpond"

    def judge(self, samples: Samples) -> dict[str, Any]:
        subject = self._values(samples, self.subject)
        peers = [(name, factor, self._values(samples, name)) for name, factor in self.targets]
        peers = [peer for peer in peers if peer[2]]
        outcome: dict[str, Any] = {"text": self.text, "metric": self.metric.key, "unit": self.metric.unit}
        if not subject or (self.absolute is None and not peers):
            return outcome | {"verdict": NOT_MEASURED}
        verdicts = []
        for label, pick in (("best", self.metric.best), ("median", median)):
            value = pick(subject)
            limits = [(factor * pick(values), name, pick(values)) for name, factor, values in peers]
            if self.absolute is not None:
                limits = [(self.absolute, "", 0.0)]
            limit, peer, peer_value = min(limits) if self.metric.better == "higher" else max(limits)
            verdicts.append(self._verdict(value, limit))
            outcome |= {f"{label}_value": value, f"{label}_limit": limit}
            if peer and peer_value:
                outcome |= {"against": peer, f"{label}_ratio": value / peer_value}
        verdict = min(verdicts, key=(HOLDS, NEARLY, MISSED).index)
        if verdict != HOLDS and len(peers) < len(self.targets):
            return outcome | {"verdict": NOT_MEASURED}  # the peer that is missing may be the easier one
        return outcome | {"verdict": verdict}

    def _verdict(self, value: float, limit: float) -> str:
        if self.metric.better == "higher":
            return HOLDS if value >= limit else NEARLY if value >= limit * (1 - NEAR) else MISSED
        return HOLDS if value <= limit else NEARLY if value <= limit * (1 + NEAR) else MISSED

    def _values(self, samples: Samples, name: str) -> list[float]:
        return [sample[self.metric.key] for sample in samples.get(name, []) if self.metric.key in sample]


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    method: str
    metrics: tuple[Metric, ...]
    bars: tuple[Bar, ...]
    run: Callable[[Any], Samples]  # takes the Bench
    needs: tuple[str, ...] = ()  # load generators without which there is nothing to measure


@dataclass
class Outcome:
    """One scenario's figures, ready for JSON."""

    scenario: Scenario
    samples: Samples
    left_out: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        scenario = self.scenario
        figures: dict[str, dict[str, Any]] = {}
        for name, runs in self.samples.items():
            for metric in scenario.metrics:
                values = [run[metric.key] for run in runs if metric.key in run]
                if values:
                    shown = {"best": metric.best(values), "median": median(values), "all": values}
                    unit = {"unit": metric.unit, "digits": metric.digits, "better": metric.better}
                    figures.setdefault(name, {})[metric.key] = shown | unit
        return {
            "name": scenario.name,
            "title": scenario.title,
            "method": scenario.method,
            "figures": figures,
            "ratios": ratios(figures),
            "bars": [bar.judge(self.samples) for bar in scenario.bars],
            "left_out": self.left_out,
        }


def ratios(figures: dict[str, dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """By row and metric, best and median against the same row of `before`; empty where there is none."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, shown in figures.items():
        earlier = figures.get("before" if name == "headpond" else f"before, {name}", {})
        for key in shown:
            if key in earlier and earlier[key]["best"] and earlier[key]["median"]:
                ratio = {pick: shown[key][pick] / earlier[key][pick] for pick in ("best", "median")}
                found.setdefault(name, {})[key] = ratio
    return found


def interleave(
    names: list[str], repetitions: int, one_run: Callable[[str], Sample | None], say: Callable[[str], None]
) -> Samples:
    """Every repetition runs every server once, each time beginning with another one; dirty pages are written between.

    A run that returns None failed; it leaves no sample.
    """
    samples: Samples = {name: [] for name in names}
    for repetition in range(repetitions):
        turn = repetition % len(names) if names else 0
        for name in names[turn:] + names[:turn]:
            os.sync()
            sample = one_run(name)
            if sample is not None:
                samples[name].append(sample)
                say(f"    run {repetition + 1}/{repetitions} {name:<12} " + _brief(sample))
    return samples


def _brief(sample: Sample) -> str:
    return "  ".join(f"{key} {value:,.2f}" for key, value in sample.items())
