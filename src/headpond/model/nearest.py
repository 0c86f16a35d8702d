"""Finds the known name nearest to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable

LIKENESS_MIN = 0.6


def nearest(name: str, known: Iterable[str], likeness: float = LIKENESS_MIN) -> str | None:
    """The most similar of those names, None when none is near. Upper and lower case don't matter."""
    import difflib  # only when a name was mistyped

    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)``, to be put behind a sentence; nothing when nothing is near."""
    near = nearest(name, known)
    return "" if near is None else f" (did you mean {near}?)"
