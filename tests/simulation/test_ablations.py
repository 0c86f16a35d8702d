"""Each planted bug is found within a few seeds of its scenario, in which nothing is broken without it.

Those that the simulator can't find are skipped, and say why.
"""

from __future__ import annotations

import pytest

from simulation.ablations import ABLATIONS
from simulation.ablations.planting import Ablation
from simulation.ablations.search import broken_in_scenario, first_found

SEEDS = range(1, 21)

pytestmark = pytest.mark.simulation

_CASES = [
    pytest.param(each, id=each.name, marks=[pytest.mark.skip(reason=each.blind)] if each.blind else [])
    for each in ABLATIONS.values()
]


@pytest.mark.parametrize("ablation", _CASES)
def test_a_planted_bug_is_found_within_twenty_seeds_and_nothing_without_it(ablation: Ablation) -> None:
    found = first_found(ablation, SEEDS)
    assert found is not None, f"{ablation.name} is not found"
    for seed in range(SEEDS.start, found.seed + 1):
        assert broken_in_scenario(ablation, seed) == ()
