"""``headpond config``: the settings in force, where each comes from, and which have no effect here. Secrets are
masked."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headpond.cli.common.arguments import add_json, describe
from headpond.cli.config.options import add_settings

if TYPE_CHECKING:
    from headpond.config.effective import Effective

_HEAD = ("setting", "value", "from", "")
_VALUE_WIDTH_MAX = 40
"""A longer value pushes its origin to the right rather than making every line long."""


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Print the effective settings and where each comes from.",
        "headpond config",
        "headpond config --all --json",
        "HEADPOND_FLUSH=interval headpond config --set log.retention.hours=24",
    )
    add_settings(parser)
    parser.add_argument("--all", action="store_true", help="include settings that have their default")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.config.effective import load_settings

    return run(load_settings(options), all=options.all, json=options.json)


def run(effective: Effective, *, all: bool = False, json: bool = False) -> int:
    """Print what somebody set, or with ``all`` every setting. Returns the exit code."""
    from headpond.cli.common.output import print_json, print_line

    rows = list(effective.rows(all_settings=all))
    if json:
        print_json([row._asdict() for row in rows])
    elif not rows:
        print("every setting has its default; `headpond config --all` shows them")
    else:
        shown = [
            (row.name, "" if row.value is None else row.value, row.origin, "" if row.has_effect else "no effect")
            for row in rows
        ]
        widths = [max(len(line[column]) for line in (*shown, _HEAD)) for column in range(3)]
        for name, value, origin, note in (_HEAD, *shown):
            line = f"{name:<{widths[0]}}  {value:<{min(widths[1], _VALUE_WIDTH_MAX)}}  {origin:<{widths[2]}}  {note}"
            print_line(line.rstrip())
    return 0
