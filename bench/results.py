"""`python -m bench.results [FILE ...]`: puts result files into RESULTS.json and makes RESULTS.md, the figures of the
project's README and figures.svg from it. Without a file: the newest one of `make bench`.

RESULTS.json has an entry for each scenario and what it was measured beside: Apache Kafka, an earlier commit or nothing.
A new result takes the place of the entry with the same two; all others stay, with the date, the commit and the machine
that they were measured with. A short run is refused, and so is one of which is not in this history.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from . import before, figures
from .report import Report, bar_line, figure, ratio, stored

HERE = Path(__file__).parent
STORE, PAGE = HERE / "RESULTS.json", HERE / "RESULTS.md"
README, CHART = HERE.parent / "README.md", HERE / "figures.svg"
Entry = dict[str, Any]
RUN = ("date", "commit", "before", "machine", "versions", "headpond_settings")
BESIDE = {"kafka": ", beside Apache Kafka", "before": ", beside an earlier commit", "": ""}
HEAD = """# Results

<!-- Made by `python -m bench.results` from RESULTS.json; README.md tells how to read it. -->

A figure is the best of the runs; in brackets their median, and their spread: the distance between the best and the
worst run, in percent of the median. *to before* is a figure divided by that of an earlier commit, measured in the same
run, in turns. A bar holds when the best or the median reaches it; within 5 % counts as reached.
"""


def merged(entries: Iterable[Entry], report: Report, order: Sequence[str]) -> list[Entry]:
    """The entries with those of the report in their places, in the order of the scenarios' names. Pure."""
    found = {(entry["name"], entry["beside"]): entry for entry in entries}
    for scenario in report["scenarios"]:
        if scenario["figures"]:
            entry = {key: value for key, value in scenario.items() if key != "left_out"}
            entry |= {"beside": beside(scenario["figures"]), "run": {key: report.get(key) for key in RUN}}
            found[entry["name"], entry["beside"]] = entry
    kinds = list(BESIDE)
    places = {name: place for place, name in enumerate(order)}
    return sorted(
        found.values(),
        key=lambda entry: (places.get(entry["name"], len(places)), entry["name"], kinds.index(entry["beside"])),
    )


def beside(rows: Iterable[str]) -> str:
    """What Headpond was measured beside, by the names of the rows ("kafka-fsync", "before, idempotent")."""
    rows = list(rows)
    return next((kind for kind in ("kafka", "before") if any(name.startswith(kind) for name in rows)), "")


def page(entries: Iterable[Entry]) -> str:
    return HEAD + "".join("\n" + section(entry) for entry in entries)


def section(entry: Entry) -> str:
    rows, ratios = entry["figures"], entry["ratios"]
    keys = list(dict.fromkeys(key for shown in rows.values() for key in shown))
    units = {key: next(shown[key]["unit"] for shown in rows.values() if key in shown) for key in keys}
    table = [["", *units.values()], ["---"] * (len(keys) + 1)]
    for name, shown in rows.items():
        table.append([name, *(_cell(shown[key]) if key in shown else "-" for key in keys)])
        if name in ratios:
            table.append(
                [f"{name}, to before", *(ratio(ratios[name][key]) if key in ratios[name] else "-" for key in keys)]
            )
    text = "\n".join("| " + " | ".join(row) + " |" for row in table)
    bars = [f"- {bar['text']}: {bar_line(bar)}, {bar['verdict']}" for bar in entry["bars"] if "best_value" in bar]
    title = f"## {entry['name']}: {entry['title']}{BESIDE[entry['beside']]}"
    parts = [title, f"{entry['method']}.", circumstances(entry), text, *(["\n".join(bars)] if bars else [])]
    return "\n\n".join(parts) + "\n"


def circumstances(entry: Entry) -> str:
    run, machine = entry["run"], entry["run"]["machine"]
    runs = max(len(each["all"]) for shown in entry["figures"].values() for each in shown.values())
    parts = [
        f"{run['date']}, commit {run['commit']}" + (f", before: {run['before']}" if run["before"] else ""),
        *([", ".join(f"{name} {version}" for name, version in run["versions"].items())] if run["versions"] else []),
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, kernel {machine['kernel']}, "
        f"{machine['filesystem']}, Python {machine['python']}, load {machine['load_1_min']:.1f}",
        *(f"`{setting}`" for setting in run["headpond_settings"]),
        f"{runs} runs" if runs > 1 else "1 run",
    ]
    return "; ".join(parts)


def _cell(shown: dict[str, Any]) -> str:
    """best (median, spread)"""
    text = figure(shown).removesuffix(f" {shown['unit']}")
    values = shown["all"]
    if len(values) < 2 or not shown["median"]:
        return text
    return f"{text[:-1]}, {(max(values) - min(values)) / shown['median'] * 100:.0f} %)"


def load(path: Path = STORE) -> list[Entry]:
    entries: list[Entry] = json.loads(path.read_text()) if path.exists() else []
    return entries


def write(entries: Sequence[Entry]) -> None:
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)  # an entry is a line
    STORE.write_text(f"[\n{lines}\n]\n")
    PAGE.write_text(page(entries))
    README.write_text(figures.put_into(README.read_text(), entries))
    CHART.write_text(figures.chart(entries))


def main(arguments: list[str]) -> int:
    from .scenarios import ALL

    entries = load()
    for one in [[file] for file in arguments] or [[]]:
        report = stored(one)
        if report is None:
            return 1
        if report["plan"]["quick"]:
            print("a short run is not for RESULTS.md; run the scenarios without --quick", file=sys.stderr)
            return 1
        if not before.is_in_history(report["commit"]):
            print(f"measured at {report['commit']}, which is not in this history", file=sys.stderr)
            return 1
        entries = merged(entries, report, [scenario.name for scenario in ALL])
        print(f"{STORE}: {', '.join(scenario['name'] for scenario in report['scenarios'])}")
    write(entries)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
