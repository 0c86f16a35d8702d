"""Turns a result file into text for the terminal or, as `python -m bench.report FILE`, into a Markdown table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .measure import HOLDS, MISSED, NEARLY, NOT_MEASURED

Report = dict[str, Any]
RESULTS = Path(__file__).parent / "results"
MARKS = {HOLDS: "yes", NEARLY: "within 5 %", MISSED: "NO", NOT_MEASURED: "-"}


def figure(shown: dict[str, Any]) -> str:
    """best (median) unit"""
    digits = shown["digits"]
    best, middle = f"{shown['best']:,.{digits}f}", f"{shown['median']:,.{digits}f}"
    return f"{best} ({middle}) {shown['unit']}" if len(shown["all"]) > 1 else f"{best} {shown['unit']}"


def ratio(shown: dict[str, float]) -> str:
    """best (median)"""
    return f"{shown['best']:.2f}x ({shown['median']:.2f}x)"


def bar_line(bar: dict[str, Any]) -> str:
    if bar["verdict"] == NOT_MEASURED:
        return "not measured"
    if "best_ratio" in bar:
        return f"{bar['best_ratio']:.2f}x ({bar['median_ratio']:.2f}x) {bar['against']}"
    return f"{bar['best_value']:.4g} ({bar['median_value']:.4g}) {bar['unit']}"


def scenario_text(scenario: Report) -> str:
    lines = [f"  {scenario['title']}"]
    for server, figures in scenario["figures"].items():
        lines.append(f"    {server:<16} " + "   ".join(figure(shown) for shown in figures.values()))
    for server, ratios in scenario.get("ratios", {}).items():
        units = scenario["figures"][server]
        parts = [f"{ratio(shown)} {units[key]['unit']}" for key, shown in ratios.items()]
        lines.append(f"    {server:<16} to before: " + "   ".join(parts))
    for bar in scenario["bars"]:
        lines.append(f"    bar: {bar['text']}: {bar_line(bar)} -> {MARKS[bar['verdict']]}")
    return "\n".join(lines)


def text(report: Report) -> str:
    bars = [(scenario["title"], bar) for scenario in report["scenarios"] for bar in scenario["bars"]]
    counts = {mark: sum(MARKS[bar["verdict"]] == mark for _, bar in bars) for mark in dict.fromkeys(MARKS.values())}
    summary = "  bars: " + ", ".join(f"{mark} {count}" for mark, count in counts.items() if count)
    missed = [
        f"    {MARKS[bar['verdict']]:<11} {title}: {bar['text']}: {bar_line(bar)}"
        for title, bar in bars
        if bar["verdict"] not in (HOLDS, NOT_MEASURED)
    ]
    parts = [machine_line(report), "figures: best (median) of the runs", ""]
    parts += [scenario_text(scenario) + "\n" for scenario in report["scenarios"]]
    return "\n".join([*parts, summary, *missed, *(f"  {line}" for line in left_out(report))])


def markdown(report: Report) -> str:
    """One row per scenario; the peers' columns appear only when one of the scenarios has them."""
    scenarios = report["scenarios"]
    known = ["headpond", "before", "kafka", "kafka-fsync", "mock"]
    servers = [name for name in known if any(name in scenario["figures"] for scenario in scenarios)]
    others = {name for scenario in scenarios for name in scenario["figures"]} - set(known)
    heads = ["load", *servers, *(["others"] if others else []), "bar", "measured", "holds"]
    lines = [machine_line(report), "", _row(heads), _row(["---"] * len(heads))]
    for scenario in scenarios:
        cells = [scenario["title"]]
        cells += [_figures(scenario["figures"].get(name, {})) for name in servers]
        if others:
            parts = [
                f"{name}: {_figures(scenario['figures'][name])}" for name in sorted(others & set(scenario["figures"]))
            ]
            cells.append("<br>".join(parts) or "-")
        bars = scenario["bars"]
        cells += ["<br>".join(render(bar) for bar in bars) for render in (_promise, bar_line, _mark)]
        lines.append(_row(cells))
    return "\n".join([*lines, "", *left_out(report)]).rstrip() + "\n"


def left_out(report: Report) -> list[str]:
    """What was not measured and why; a reason that many scenarios share is told once."""
    reasons: dict[str, list[str]] = {}
    for scenario in report["scenarios"]:
        for reason in scenario["left_out"]:
            reasons.setdefault(reason, []).append(scenario["name"])
    lines = [f"- {reason} ({', '.join(names)})" for reason, names in reasons.items()]
    return ["Left out:", *lines] if lines else []


def machine_line(report: Report) -> str:
    machine = report["machine"]
    kind = "short run, not for quoting" if report["plan"]["quick"] else f"{report['plan']['repetitions']} runs each"
    return (
        f"{report['date']}, {machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, "
        f"{machine['filesystem']}, Python {machine['python']}; {kind}; best (median)"
    )


def _figures(figures: dict[str, Any]) -> str:
    return "<br>".join(figure(shown) for shown in figures.values()) or "-"


def _promise(bar: dict[str, Any]) -> str:
    return str(bar["text"])


def _mark(bar: dict[str, Any]) -> str:
    return MARKS[bar["verdict"]]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def stored(arguments: list[str]) -> Report | None:
    """The result file that is named, or the newest; None, and said so, when there is none."""
    files = sorted(RESULTS.glob("*.json"))
    path = Path(arguments[0]) if arguments else (files[-1] if files else None)
    if path is None or not path.exists():
        print("no result file; run `make bench` first", file=sys.stderr)
        return None
    report: Report = json.loads(path.read_text())
    return report


def main(arguments: list[str]) -> int:
    report = stored(arguments)
    if report is None:
        return 1
    print(markdown(report), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
