"""A failing plan is taken apart to what is needed."""

from __future__ import annotations

import pytest

from simulation.shrink import shrink


@pytest.mark.parametrize("needed", [{3}, {0, 15}, {2, 3, 11}, set(), set(range(16))])
def test_only_what_is_needed_is_left(needed: set[int]) -> None:
    assert set(shrink(range(16), lambda kept: needed <= set(kept))) == needed


def test_the_order_stays() -> None:
    assert shrink("abcdefgh", lambda kept: {"b", "g", "h"} <= set(kept)) == ("b", "g", "h")


def test_it_gives_up_after_so_many_tries_with_what_still_fails() -> None:
    tries = 0

    def fails(kept: tuple[int, ...]) -> bool:
        nonlocal tries
        tries += 1
        return {1, 60} <= set(kept)

    assert {1, 60} <= set(shrink(range(64), fails, tries_max=5))
    assert tries <= 5
