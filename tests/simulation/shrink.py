"""Takes a failing plan apart: which of its faults are needed? (ddmin, Zeller and Hildebrandt)

Leaves out halves, then quarters, and so on, as long as the run still breaks the same property. Deterministic runs make
each try worth believing; faults are data from a stream of their own, so the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
TRIES_MAX = 120


def shrink(
    items: Sequence[T], still_fails: Callable[[tuple[T, ...]], bool], *, tries_max: int = TRIES_MAX
) -> tuple[T, ...]:
    """A part of ``items`` that still fails and from which, tries permitting, no single one can be left out."""
    kept = tuple(items)
    tries = 0
    parts = 2
    while kept:
        size = max(1, -(-len(kept) // parts))
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            tries += 1
            if still_fails(rest):
                kept, parts = rest, max(2, parts - 1)
                break
            if tries >= tries_max:
                return kept
        else:
            if size == 1:
                return kept
            parts = min(len(kept), parts * 2)
    return kept
