"""Looks for the first seed in which a planted bug shows: in its own scenario, or in what everybody draws.

A run that ends with an exception is a finding, too: whatever it was, it does not happen without the bug.
"""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from simulation.ablations import ABLATIONS
from simulation.ablations.planting import Ablation, Patch, planted
from simulation.faults import Fault
from simulation.run import Drawn, drawn, run_seed
from simulation.shrink import shrink

SHRINK_TRIES_MAX = 40


class Found(NamedTuple):
    seed: int
    properties: tuple[str, ...]
    """That were broken; the first one counts."""


def directed(ablation: Ablation, seed: int) -> Drawn:
    options = ablation.options(seed)
    return Drawn(options, ablation.plan(seed, options))


def first_found(ablation: Ablation, seeds: Iterable[int]) -> Found | None:
    """In its own scenario."""
    with planted(ablation.plant):
        for seed in seeds:
            if broken := broken_in_scenario(ablation, seed):
                return Found(seed, broken)
    return None


def broken_in_scenario(ablation: Ablation, seed: int) -> tuple[str, ...]:
    """With or without the bug, as the caller has it."""
    with planted(ablation.scenario.tune or _nothing):
        return broken_by(seed, directed(ablation, seed))


def _nothing(patch: Patch) -> None:
    pass


def first_drawn(ablation: Ablation, seeds: Iterable[int], processes: int) -> Found | None:
    """In what everybody draws, on several cores; the seeds are looked at in their order."""
    play = partial(_play_drawn, ablation.name)
    with multiprocessing.get_context("fork").Pool(processes, initializer=quiet, maxtasksperchild=200) as pool:
        for seed, broken in pool.imap(play, seeds):
            if broken:
                return Found(seed, broken)
    return None


def _play_drawn(name: str, seed: int) -> tuple[int, tuple[str, ...]]:
    with planted(ABLATIONS[name].plant):
        return seed, broken_by(seed, drawn(seed))


def broken_by(seed: int, case: Drawn) -> tuple[str, ...]:
    try:
        _, violations = run_seed(seed, case)
    except Exception as error:
        return (f"exception: {type(error).__name__}",)
    return tuple(dict.fromkeys(each.property for each in violations))


def shrunk(ablation: Ablation, found: Found, case: Drawn, *, is_directed: bool) -> tuple[Fault, ...]:
    """The faults that it takes."""
    tune = ablation.scenario.tune if is_directed else None

    def still_fails(plan: tuple[Fault, ...]) -> bool:
        return found.properties[0] in broken_by(found.seed, Drawn(case.options, plan))

    with planted(ablation.plant), planted(tune or _nothing):
        return shrink(case.plan, still_fails, tries_max=SHRINK_TRIES_MAX)


def quiet() -> None:
    logging.getLogger("headpond").setLevel(logging.ERROR)
    logging.getLogger("headpond").propagate = False
