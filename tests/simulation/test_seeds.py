"""A fixed range of seeds breaks nothing under faults, and a seed is one run, event for event."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.run import explain, result_of

pytestmark = pytest.mark.simulation

SEEDS = 200
PARTS = 20
TWICE = 20
TESTS = Path(__file__).parents[1]

PRINT_TRACES = f"""
from simulation.run import result_of
for seed in range(1, {TWICE} + 1):
    result = result_of(seed)
    print(seed, result.trace, result.events)
"""


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_broken_under_seeded_faults(part: int) -> None:
    size = SEEDS // PARTS
    for seed in range(1 + part * size, 1 + (part + 1) * size):
        result = result_of(seed)
        assert not result.violations, explain(seed, result.violations)


def test_a_seed_is_the_same_run_again_whatever_the_hashes_of_strings() -> None:
    runs = [_traces(hash_seed) for hash_seed in ("0", "4711")]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == TWICE, "each seed is a run of its own"


def _traces(hash_seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", PRINT_TRACES], env=environment, capture_output=True, text=True, check=True, timeout=600
    )
    return done.stdout.splitlines()
