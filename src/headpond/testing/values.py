"""Settings as tests write them, in the words that a broker reads."""

from __future__ import annotations


def as_text(value: object) -> str:
    """``True`` is ``true``, a list is a comma-separated one, everything else is as it prints."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(as_text(one) for one in value)
    return str(value)
