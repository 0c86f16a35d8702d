"""What the ordinary run leaves to `make test-long`: variants of a test that others stand for, and most of the examples
that are made by chance."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

EVERY_EXAMPLE = os.environ.get("HEADPOND_EXAMPLES") == "all"
SHARE = 3
"""The ordinary run takes one example in so many."""


def kinds(names: Iterable[Any], *, ordinary: Collection[Any]) -> list[Any]:
    """The parameters of a test, or of a fixture: the ordinary run has some of them, `make test-long` the others."""
    named = list(names)
    assert set(ordinary) <= set(named), f"{ordinary} are not all among {named}"
    return [name if name in ordinary else pytest.param(name, marks=pytest.mark.long) for name in named]


def rare(*values: Any) -> Any:
    """A row of parameters that only `make test-long` has."""
    return pytest.param(*values, marks=pytest.mark.long)


def examples(count: int) -> int:
    return count if EVERY_EXAMPLE else count // SHARE
