"""``headpond pipeline status``: how pipelines are, from the files that they leave, and their lag from the broker."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import TIMEOUT_DEFAULT_S, add_command_config, add_json, describe, positive_seconds


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show how pipelines are: input rate, lag, batch time and state of each sink.",
        "headpond pipeline status",
        "headpond pipeline status sessions.toml --json",
        notes="Without FILE: all pipelines that have their folder in .pipelines here. The lag is asked of the broker;\n"
        "where that does not answer, it is the one of the last batch.",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="a declaration, or the folder of a pipeline")
    add_json(parser)
    add_command_config(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive_seconds,
        default=TIMEOUT_DEFAULT_S,
        help=f"give up on a broker that does not answer ({TIMEOUT_DEFAULT_S:g})",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.pipeline.status_show import show

    return show(options)
