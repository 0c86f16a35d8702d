"""``penstock config``: the settings in force, and where each comes from. Secrets are masked."""

from __future__ import annotations

from penstock.config.effective import Effective


def run(effective: Effective, *, all: bool = False, json: bool = False) -> int:
    """Print what somebody set, or with ``all`` every setting. Returns the exit code."""
    rows = list(effective.rows(all_settings=all))
    if json:
        from msgspec.json import encode, format

        print(format(encode([row._asdict() for row in rows])).decode())
    elif not rows:
        print("every setting has its default; `penstock config --all` shows them")
    else:
        shown = [(row.name, "" if row.value is None else row.value, row.origin) for row in rows]
        widths = [max(len(line[column]) for line in (*shown, _HEAD)) for column in (0, 1)]
        for name, value, origin in (_HEAD, *shown):
            print(f"{name:<{widths[0]}}  {value:<{min(widths[1], _VALUE_WIDTH_MAX)}}  {origin}")
    return 0


_HEAD = ("setting", "value", "from")
_VALUE_WIDTH_MAX = 40
"""A longer value pushes its origin to the right rather than making every line long."""
