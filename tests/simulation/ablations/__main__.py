"""``python -m simulation.ablations``, as `make ablations` does: how long does it take to find each planted bug?

For each: how many seeds of its own scenario, how many of what everybody draws, which property told, and how many faults
are left of that plan when it is shrunk. Those for which the simulator is known to be blind are searched for only when
they are named. Ends with 1 if another one was not found.
"""

from __future__ import annotations

import argparse
import os
import sys

from simulation.ablations import ABLATIONS
from simulation.ablations.planting import Ablation
from simulation.ablations.search import Found, directed, first_drawn, first_found, quiet, shrunk
from simulation.run import drawn

DIRECTED_SEEDS = 20
DRAWN_SEEDS = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="ablations", description="does the simulator find planted bugs?")
    parser.add_argument("names", nargs="*", help="which (default all)")
    parser.add_argument("--seeds", type=int, default=DRAWN_SEEDS, help="of the ordinary draw (default 500, 0: none)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one for each core")
    options = parser.parse_args()
    quiet()
    chosen = [ABLATIONS[name] for name in options.names or ABLATIONS]
    _print_row("ablation", "directed", "drawn", "faults", "property")
    missed: list[str] = []
    for ablation in chosen:
        if ablation.blind and not options.names:
            _print_row(ablation.name, "blind", "", "", ablation.blind)
        elif not _search(ablation, options.seeds, options.processes):
            missed.append(ablation.name)
    print(f"not found: {', '.join(missed)}" if missed else "all found")
    return 1 if missed else 0


def _search(ablation: Ablation, seeds: int, processes: int) -> bool:
    in_scenario = first_found(ablation, range(1, DIRECTED_SEEDS + 1))
    in_draw = first_drawn(ablation, range(1, seeds + 1), processes) if seeds else None
    found = in_draw or in_scenario
    left = ""
    if found is not None:
        case = drawn(found.seed) if in_draw is not None else directed(ablation, found.seed)
        left = f"{len(shrunk(ablation, found, case, is_directed=in_draw is None))} of {len(case.plan)}"
    drawn_text = _seeds(in_draw) if seeds else "-"
    _print_row(ablation.name, _seeds(in_scenario), drawn_text, left, found.properties[0] if found else ablation.blind)
    return in_scenario is not None and (in_draw is not None or not seeds)


def _seeds(found: Found | None) -> str:
    return "no" if found is None else str(found.seed)


def _print_row(name: str, in_scenario: str, in_draw: str, left: str, broken: str) -> None:
    print(f"{name:34} {in_scenario:>8} {in_draw:>6} {left:>8}  {broken}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
