"""Plays seeds: ``python -m simulation.run --seeds 1000``, as `make simulate` does. Stops at the first that fails.

A failure is told with its seed, what was drawn, the plan of faults shrunk to those that matter, what was broken, the
last lines of the trace, and the command that plays it again.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from simulation.checkers import Violation, judge
from simulation.faults import Fault
from simulation.plan import Options, draw_options, draw_plan
from simulation.shrink import shrink
from simulation.stage import Run, play
from simulation.workloads import WORKLOADS

TRACE_LINES = 60


class Result(NamedTuple):
    seed: int
    violations: list[Violation]
    trace: int
    events: int
    virtual_s: float
    faults: int
    operations: int
    cpu_s: float


class Drawn(NamedTuple):
    options: Options
    plan: tuple[Fault, ...]


def drawn(seed: int) -> Drawn:
    options = draw_options(seed, list(WORKLOADS))
    return Drawn(options, draw_plan(seed, options))


def run_seed(seed: int, case: Drawn | None = None) -> tuple[Run, list[Violation]]:
    case = case or drawn(seed)
    run = play(seed, case.options, case.plan)
    return run, judge(run.history)


def result_of(seed: int) -> Result:
    started_s = time.process_time()
    case = drawn(seed)
    run, violations = run_seed(seed, case)
    cpu_s = time.process_time() - started_s
    operations = len(run.history.operations)
    return Result(seed, violations, run.trace, run.events, run.virtual_s, len(case.plan), operations, cpu_s)


def play_many(seeds: Iterable[int], processes: int) -> Iterator[Result]:
    """Results as they come, on several cores."""
    if processes <= 1:
        yield from map(result_of, seeds)
        return
    with multiprocessing.get_context("fork").Pool(processes, initializer=_quiet, maxtasksperchild=200) as pool:
        yield from pool.imap_unordered(result_of, seeds, chunksize=1)


def explain(seed: int, violations: list[Violation]) -> str:
    """The report of a failure; plays the seed some more times, with fewer faults."""
    case = drawn(seed)
    wanted = violations[0].property

    def still_fails(plan: tuple[Fault, ...]) -> bool:
        return any(each.property == wanted for each in run_seed(seed, Drawn(case.options, plan))[1])

    plan = shrink(case.plan, still_fails)
    run, violations = run_seed(seed, Drawn(case.options, plan))
    lines = [
        f"seed {seed} breaks: {wanted}",
        *(f"  {each.property}: {each.sentence}" for each in violations),
        "",
        f"options = {case.options}",
        f"plan = (  # {len(plan)} of {len(case.plan)} faults are needed",
        *(f"    {fault}," for fault in plan),
        ")",
        "",
        *run.notes[-TRACE_LINES:],
        "",
        f"again: make simulate SEED={seed}",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulate", description="play the broker under seeded faults")
    parser.add_argument("--seeds", type=int, default=1_000, help="how many (default 1000)")
    parser.add_argument("--first", type=int, default=1, help="the first one (default 1)")
    parser.add_argument("--seed", type=int, help="play this one, and tell all about it")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one for each core")
    options = parser.parse_args()
    _quiet()
    if options.seed is not None:
        return _replay(options.seed)
    return _play_all(range(options.first, options.first + options.seeds), options.processes)


def _replay(seed: int) -> int:
    run, violations = run_seed(seed)
    if violations:
        print(explain(seed, violations))
        return 1
    print("\n".join(run.notes))
    print(f"seed {seed}: {run.events} events in {run.virtual_s:.1f} virtual seconds, nothing broken")
    return 0


def _play_all(seeds: range, processes: int) -> int:
    from rich.console import Console
    from rich.progress import Progress

    started_s = time.monotonic()
    events = faults = operations = played = 0
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("seeds", total=len(seeds))
        for result in play_many(seeds, processes):
            played += 1
            events, faults, operations = events + result.events, faults + result.faults, operations + result.operations
            progress.advance(bar)
            if result.violations:
                progress.stop()
                print(explain(result.seed, result.violations))
                return 1
    minutes = (time.monotonic() - started_s) / 60
    print(
        f"{played} seeds from {seeds.start}: nothing broken; {faults} faults, {operations} operations, {events} events,"
        f" {played / minutes:.0f} seeds a minute"
    )
    return 0


def _quiet() -> None:
    logging.getLogger("headpond").setLevel(logging.ERROR)
    logging.getLogger("headpond").propagate = False


if __name__ == "__main__":
    sys.exit(main())
