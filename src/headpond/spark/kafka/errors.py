"""What a user of the source can be told: one sentence, never a secret."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WrongOption(ValueError):
    """An option that does not exist, does not fit the others, or has a value that means nothing."""


class DataLost(RuntimeError):
    """Records that the query should have read are gone, and ``failOnDataLoss`` is true."""


class WrongCheckpoint(RuntimeError):
    """The checkpoint was not written by a query like this one."""


FAIL_ON_DATA_LOSS_ADVICE = "set failOnDataLoss to false to go on with what is there"


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean X?``, or nothing when nothing is near. Upper and lower case don't matter."""
    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return f"; did you mean {by_lower[found[0]]}?" if found else ""
