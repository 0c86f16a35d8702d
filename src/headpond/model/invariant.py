"""Assertions that stay on in production (``python -O`` strips ``assert``)."""

from __future__ import annotations


class InvariantBroken(RuntimeError):
    """A relation that the code relies on does not hold: a bug of ours, never the peer's fault."""


def invariant(holds: bool, what: str, *context: object) -> None:
    """Raise ``InvariantBroken`` unless ``holds``; ``context`` is shown with it."""
    if not holds:
        raise InvariantBroken(f"{what}: {', '.join(map(repr, context))}" if context else what)
