"""`python -m bench.results [FILE]`: puts a result file into RESULTS.md, which has a section for each scenario.

The sections of the scenarios in the file are replaced, all others stay: a figure keeps the date, the commit and the
machine that it was measured with. A short run is refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from .report import Report, figure, ratio, stored

PAGE = Path(__file__).parent / "RESULTS.md"
HEAD = """# Results

<!-- Made by `python -m bench.results`; README.md tells how to read it. -->

Each figure is the best of the runs, and in brackets their median. *to before* is a figure divided by that of an earlier
commit, measured in the same run, in turns.
"""
_SECTION = re.compile(
    r"^<!-- begin (?P<name>\S+) -->\n(?P<text>.*?)^<!-- end (?P=name) -->\n", re.MULTILINE | re.DOTALL
)


def updated(page: str, report: Report, order: Iterable[str]) -> str:
    """The page with the sections of the report in it, in the order of the scenarios' names. Pure."""
    sections = {found["name"]: found["text"] for found in _SECTION.finditer(page)}
    for scenario in report["scenarios"]:
        if scenario["figures"]:
            sections[scenario["name"]] = section(scenario, report)
    known = [name for name in order if name in sections]
    names = known + sorted(sections.keys() - set(known))
    return HEAD + "".join(f"\n<!-- begin {name} -->\n{sections[name]}<!-- end {name} -->\n" for name in names)


def section(scenario: Report, report: Report) -> str:
    figures, ratios = scenario["figures"], scenario["ratios"]
    keys = list(dict.fromkeys(key for shown in figures.values() for key in shown))
    units = {key: next(shown[key]["unit"] for shown in figures.values() if key in shown) for key in keys}
    rows = [["", *units.values()], ["---"] * (len(keys) + 1)]
    for name, shown in figures.items():
        rows.append([name, *(_without_unit(figure(shown[key])) if key in shown else "-" for key in keys)])
        if name in ratios:
            rows.append(
                [f"{name}, to before", *(ratio(ratios[name][key]) if key in ratios[name] else "-" for key in keys)]
            )
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    title, method = scenario["title"], scenario["method"]
    return f"## {scenario['name']}: {title}\n\n{method}.\n\n{_circumstances(scenario, report)}\n\n{table}\n"


def _circumstances(scenario: Report, report: Report) -> str:
    machine = report["machine"]
    runs = max(len(each["all"]) for shown in scenario["figures"].values() for each in shown.values())
    parts = [
        f"{report['date']}, commit {report['commit']}" + (f", before: {report['before']}" if report["before"] else ""),
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, kernel {machine['kernel']}, "
        f"{machine['filesystem']}, Python {machine['python']}, load {machine['load_1_min']:.1f}",
        *(f"`{setting}`" for setting in report["headpond_settings"]),
        f"{runs} runs, best (median)",
    ]
    return "; ".join(parts)


def _without_unit(text: str) -> str:
    best, bracket, rest = text.partition(" (")
    return f"{best} ({rest.partition(')')[0]})" if bracket else text.partition(" ")[0]


def main(arguments: list[str]) -> int:
    from .scenarios import ALL

    report = stored(arguments)
    if report is None:
        return 1
    if report["plan"]["quick"]:
        print("a short run is not for RESULTS.md; run the scenarios without --quick", file=sys.stderr)
        return 1
    PAGE.write_text(updated(PAGE.read_text() if PAGE.exists() else "", report, [scenario.name for scenario in ALL]))
    print(f"{PAGE}: {', '.join(scenario['name'] for scenario in report['scenarios'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
